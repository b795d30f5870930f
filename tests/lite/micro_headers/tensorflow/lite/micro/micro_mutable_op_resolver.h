// As above.
#ifndef SNUGLY_TEST_MICRO_MUTABLE_OP_RESOLVER_H_
#define SNUGLY_TEST_MICRO_MUTABLE_OP_RESOLVER_H_

#include "tensorflow/lite/micro/micro_interpreter.h"

namespace tflite {

template <unsigned int count>
class MicroMutableOpResolver : public MicroOpResolver {
 public:
  TfLiteStatus AddConv2D();
  TfLiteStatus AddDepthwiseConv2D();
  TfLiteStatus AddAveragePool2D();
  TfLiteStatus AddFullyConnected();
  TfLiteStatus AddReshape();
  TfLiteStatus AddSoftmax();
};

}  // namespace tflite

#endif  // SNUGLY_TEST_MICRO_MUTABLE_OP_RESOLVER_H_
