// As above.
#ifndef SNUGLY_TEST_SCHEMA_GENERATED_H_
#define SNUGLY_TEST_SCHEMA_GENERATED_H_

namespace tflite {

class Model;
const Model* GetModel(const void*);

}  // namespace tflite

#endif  // SNUGLY_TEST_SCHEMA_GENERATED_H_
