// The declarations of TFLite Micro that examples/micro/main.cc uses, for a compiler to look at.
#ifndef SNUGLY_TEST_MICRO_INTERPRETER_H_
#define SNUGLY_TEST_MICRO_INTERPRETER_H_

#include <cstddef>
#include <cstdint>

enum TfLiteStatus { kTfLiteOk, kTfLiteError };

struct TfLiteTensor {
  union {
    std::int8_t* int8;
  } data;
  std::size_t bytes;
};

namespace tflite {

class Model;
class MicroOpResolver {};

class MicroInterpreter {
 public:
  MicroInterpreter(const Model*, const MicroOpResolver&, std::uint8_t*, std::size_t);
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  TfLiteTensor* input(std::size_t);
  TfLiteTensor* output(std::size_t);
};

}  // namespace tflite

#endif  // SNUGLY_TEST_MICRO_INTERPRETER_H_
