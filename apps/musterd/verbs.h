// The verbs of musterd, one file each.
#pragma once

#include <string>

#include "controller/controller.h"

namespace muster::apps {

int controller_verb(int argc, char** argv);
int agent_verb(int argc, char** argv);
int up_verb(int argc, char** argv);
int bench_verb(int argc, char** argv);

controller::ControllerHooks controller_hooks();
/// Of this very program: its companions lie beside it.
std::string program_folder();

}  // namespace muster::apps
