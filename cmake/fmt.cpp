// The definitions behind the headers of fmt 9, and the templates that its headers only declare.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template thousands_sep_result<char> thousands_sep_impl(locale_ref place);
template char decimal_point_impl(locale_ref place);
template void buffer<char>::append(const char* begin, const char* end);
}  // namespace detail
FMT_END_NAMESPACE
