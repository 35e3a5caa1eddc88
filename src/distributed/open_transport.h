// The plug-in that carries bytes between ranks, found and opened when a run has several.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "distributed/launcher.h"
#include "distributed/transport.h"

namespace heddle::distributed {

// Places where libheddle_mpi.so is looked for, in this order: what HEDDLE_MPI names, else the
// program's own directory, the library folders beside it, and wherever the system looks.
std::vector<std::string> plugin_places(const Environment& environment, const std::string& program);

// Opens the plug-in and joins the ranks that the launcher started. Error where there is none, where
// it is of another version, or where it finds other ranks than the launcher told.
std::unique_ptr<Transport> open_transport(const Launch& launch);

}  // namespace heddle::distributed
