"""Configurations in the manner of the model zoo's, short."""

READER = """
train_input_reader: {
  label_map_path: "PATH_TO_BE_CONFIGURED/label_map.txt"
  tf_record_input_reader {
    input_path: "PATH_TO_BE_CONFIGURED/train2017-?????-of-00256.tfrecord"
  }
}
"""

OPTIMIZER = """
  optimizer {
    momentum_optimizer: {
      learning_rate: { cosine_decay_learning_rate { learning_rate_base: .08 total_steps: 50000 } }
      momentum_optimizer_value: 0.9
    }
    use_moving_average: false
  }
"""


def ssd_mobilenet_v2_fpnlite(side=320, batch=128, reader=READER):
    return f"""# SSD with Mobilenet v2 FPN-lite feature extractor
model {{
  ssd {{
    num_classes: 90
    anchor_generator {{
      multiscale_anchor_generator {{
        min_level: 3
        max_level: 7
        anchor_scale: 4.0
        aspect_ratios: [1.0, 2.0, 0.5]
        scales_per_octave: 2
      }}
    }}
    image_resizer {{
      fixed_shape_resizer {{
        height: {side}
        width: {side}
      }}
    }}
    box_predictor {{
      weight_shared_convolutional_box_predictor {{
        depth: 128
        class_prediction_bias_init: -4.6
        conv_hyperparams {{
          activation: RELU_6,
          batch_norm {{ scale: true, decay: 0.997, epsilon: 0.001, }}
        }}
        num_layers_before_predictor: 4
        share_prediction_tower: true
        use_depthwise: true
      }}
    }}
    feature_extractor {{
      type: 'ssd_mobilenet_v2_fpn_keras'
      use_depthwise: true
      fpn {{
        min_level: 3
        max_level: 7
        additional_layer_depth: 128
      }}
      depth_multiplier: 1.0
    }}
  }}
}}

train_config: {{
  fine_tune_checkpoint: "PATH_TO_BE_CONFIGURED/mobilenet_v2.ckpt-1"
  batch_size: {batch}  # for eight cores
  num_steps: 50000
  data_augmentation_options {{
    random_horizontal_flip {{
    }}
  }}
{OPTIMIZER}
  max_number_of_boxes: 100
}}
{reader}
eval_config: {{
  metrics_set: "coco_detection_metrics"
  batch_size: 1;
}}
"""


def faster_rcnn(extractor="faster_rcnn_resnet50_keras", side=640, batch=8, masks=False):
    mask_head = "predict_instance_masks: true mask_height: 33 mask_width: 33" if masks else ""
    load = "load_instance_masks: true\n  mask_type: PNG_MASKS" if masks else ""
    return f"""model {{
  faster_rcnn {{
    num_classes: 90
    image_resizer {{
      keep_aspect_ratio_resizer {{
        min_dimension: {side}
        max_dimension: {side}
        pad_to_max_dimension: true
      }}
    }}
    feature_extractor {{
      type: '{extractor}'
      batch_norm_trainable: true
    }}
    first_stage_anchor_generator {{
      grid_anchor_generator {{
        scales: [0.25, 0.5, 1.0, 2.0]
        aspect_ratios: [0.5, 1.0, 2.0]
        height_stride: 16
        width_stride: 16
      }}
    }}
    first_stage_max_proposals: 300
    initial_crop_size: 14
    maxpool_kernel_size: 2
    maxpool_stride: 2
    second_stage_box_predictor {{
      mask_rcnn_box_predictor {{ use_dropout: false {mask_head} }}
    }}
  }}
}}

train_config: {{
  batch_size: {batch}
{OPTIMIZER}
  data_augmentation_options {{
    random_square_crop_by_scale {{ scale_min: 0.6 scale_max: 1.3 }}
  }}
}}

train_input_reader: {{
  tf_record_input_reader {{
    input_path: "PATH_TO_BE_CONFIGURED/train2017-?????-of-00256.tfrecord"
  }}
  {load}
}}
"""


EFFICIENTDET_D0 = f"""
model {{
  ssd {{
    num_classes: 90
    add_background_class: false
    anchor_generator {{
      multiscale_anchor_generator {{ aspect_ratios: [1.0, 2.0, 0.5] scales_per_octave: 3 }}
    }}
    image_resizer {{
      keep_aspect_ratio_resizer {{
        min_dimension: 512
        max_dimension: 512
        pad_to_max_dimension: true
      }}
    }}
    box_predictor {{
      weight_shared_convolutional_box_predictor {{
        depth: 64
        num_layers_before_predictor: 3
        use_depthwise: true
      }}
    }}
    feature_extractor {{
      type: 'ssd_efficientnet-b0_bifpn_keras'
      bifpn {{ min_level: 3 max_level: 7 num_iterations: 3 num_filters: 64 }}
    }}
  }}
}}
train_config: {{
  batch_size: 128
  use_bfloat16: true
  data_augmentation_options {{
    random_scale_crop_and_pad_to_square {{ output_size: 512 scale_min: 0.1 scale_max: 2.0 }}
  }}
{OPTIMIZER}
}}
{READER}
"""

CENTERNET_RESNET50 = """
model {
  center_net {
    num_classes: 90
    feature_extractor { type: "resnet_v2_50" }
    image_resizer {
      keep_aspect_ratio_resizer { min_dimension: 512 max_dimension: 512 pad_to_max_dimension: true }
    }
    object_detection_task { task_loss_weight: 1.0 localization_loss { l1_localization_loss { } } }
  }
}
train_config: {
  batch_size: 128
  data_augmentation_options { random_absolute_pad_image { pad_color: [0, 0, 0] } }
  optimizer {
    adam_optimizer: {
      epsilon: 1e-7  # as Keras has it
    }
    use_moving_average: false
  }
}
train_input_reader: {
  external_input_reader {
    [object_detection.protos.GoogleInputReader.google_input_reader] {
      ss_table_input_reader: { input_path: "somewhere" data_type: TF_EXAMPLE }
    }
  }
}
"""
