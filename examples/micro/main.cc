// Firmware that runs a model in the arena that `snugly shrink` found. See README.md.

#include <cstdint>

#include "small.h"        // snugly shrink … --emit-header small.h
#include "small_model.h"  // xxd -i small.tflite, aligned to 16 bytes
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

// Exactly what the model needs; with 16 bytes less the interpreter does not start.
alignas(snugly_small::kArenaAlignment) std::uint8_t arena[snugly_small::kArenaBytes];

static_assert(sizeof(small_tflite) >= 1, "the model is missing");

}  // namespace

// Gives the class with the highest score, or -1. Fill the input anew before each call: with
// overlaps, as without, its memory is used for other tensors while the model runs.
int classify(const std::int8_t* values, std::size_t count) {
  // One line for each operator that small.h lists.
  static tflite::MicroMutableOpResolver<6> resolver;
  static const bool registered =
      resolver.AddConv2D() == kTfLiteOk && resolver.AddDepthwiseConv2D() == kTfLiteOk &&
      resolver.AddAveragePool2D() == kTfLiteOk && resolver.AddFullyConnected() == kTfLiteOk &&
      resolver.AddReshape() == kTfLiteOk && resolver.AddSoftmax() == kTfLiteOk;
  static tflite::MicroInterpreter interpreter(tflite::GetModel(small_tflite), resolver, arena,
                                              sizeof(arena));
  static const bool ready = registered && interpreter.AllocateTensors() == kTfLiteOk;
  if (!ready || count != interpreter.input(0)->bytes) return -1;

  for (std::size_t i = 0; i < count; ++i) interpreter.input(0)->data.int8[i] = values[i];
  if (interpreter.Invoke() != kTfLiteOk) return -1;

  const TfLiteTensor* scores = interpreter.output(0);
  int best = 0;
  for (std::size_t i = 1; i < scores->bytes; ++i) {
    if (scores->data.int8[i] > scores->data.int8[best]) best = static_cast<int>(i);
  }
  return best;
}

int main() {
  static std::int8_t silence[490] = {};
  return classify(silence, sizeof(silence)) < 0;
}
