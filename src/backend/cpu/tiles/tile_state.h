// Whose tiles are they? Setting them up costs as much as a dozen of their products, so a thread
// keeps them from one small product to the next. A thread that calls Heddle may use tiles of its
// own between two calls, though: at the end of a parallel section its tiles go back.
#pragma once

namespace heddle::cpu::amx {

// Whether this thread's tiles are set up as tiles.h wants them.
bool& tiles_are_configured() noexcept;

// Releases this thread's tiles if we had set them up.
void give_back_tiles() noexcept;

}  // namespace heddle::cpu::amx
