#include "io/npy/npy.h"

#include <cstring>
#include <vector>

#include "heddle/error.h"
#include "io/files/file.h"

namespace heddle::io {

namespace {

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "<f4";
    case DType::f64: return "<f8";
    case DType::i32: return "<i4";
    case DType::i64: return "<i8";
    case DType::u8: return "|u1";
    default: break;
  }
  fail(ErrorCode::dtype_mismatch, "npy", "type of the array", "f32, f64, i32, i64 or u8",
       to_string(dtype));
}

template <class T>
std::string bytes_of(const Tensor& array) {
  const std::vector<T> values = array.to_vector<T>();
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::string bytes_of(const Tensor& array) {
  switch (array.dtype()) {
    case DType::f64: return bytes_of<double>(array);
    case DType::i32: return bytes_of<std::int32_t>(array);
    case DType::i64: return bytes_of<std::int64_t>(array);
    case DType::u8: return bytes_of<std::uint8_t>(array);
    default: return bytes_of<float>(array);
  }
}

}  // namespace

std::string encode_npy(const Tensor& array) {
  std::string sizes;
  for (int i = 0; i < array.rank(); ++i) sizes += std::to_string(array.size(i)) + ", ";
  std::string header = "{'descr': '" + std::string(type_name(array.dtype())) +
                       "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  // Magic, version and length of the header take 10 bytes; all of it is a multiple of 64, ended by
  // a newline.
  constexpr std::size_t kBefore = 10, kAlign = 64;
  header.append(kAlign - 1 - (kBefore + header.size()) % kAlign, ' ').push_back('\n');
  std::string file("\x93NUMPY\x01\x00", 8);
  file.push_back(static_cast<char>(header.size() & 0xFF));
  file.push_back(static_cast<char>(header.size() >> 8));
  return file + header + bytes_of(array);
}

void write_npy(const std::string& path, const Tensor& array) {
  write_file_atomic(path, encode_npy(array));
}

}  // namespace heddle::io
