// `muster simulate`: studies of a trace on a cluster of paper.
#pragma once

#include "cli/app.h"

namespace muster::experiment {

/// The exit code. After Ctrl-C what there is is printed and the code is 130.
int simulate(cli::App& app, const cli::Invocation& invocation);

/// A verb of musterd as a program: `words` begin with its name, "simulate" or "tune".
int run_verb(const cli::World& world, std::span<const std::string> words, cli::Output& out,
             cli::Output& err);

}  // namespace muster::experiment
