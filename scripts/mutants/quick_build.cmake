# Included by the copy's project(): the library is compiled a third faster, kernels as ever, so that
# ccache has them already.
cmake_language(DEFER CALL target_compile_options heddle PRIVATE -O1)
