// What each command does: one file each, or one for a family. The table binds names to these.
#pragma once

#include "cli/app.h"
#include "cli/output.h"

namespace muster::cli::verbs {

int run(App& app, const Invocation& invocation);
int ps(App& app, const Invocation& invocation);
int status(App& app, const Invocation& invocation);
int why(App& app, const Invocation& invocation);
int logs(App& app, const Invocation& invocation);
int attach(App& app, const Invocation& invocation);
int exec(App& app, const Invocation& invocation);
int wait(App& app, const Invocation& invocation);
int cancel(App& app, const Invocation& invocation);
int hold(App& app, const Invocation& invocation);
int release(App& app, const Invocation& invocation);
int requeue(App& app, const Invocation& invocation);
int events(App& app, const Invocation& invocation);
int nodes(App& app, const Invocation& invocation);
int gpus(App& app, const Invocation& invocation);
int queues(App& app, const Invocation& invocation);
int queues_show(App& app, const Invocation& invocation);
int queues_apply(App& app, const Invocation& invocation);
int queues_set(App& app, const Invocation& invocation);
int plan(App& app, const Invocation& invocation);
int simulate(App& app, const Invocation& invocation);
int tune(App& app, const Invocation& invocation);
int reserve(App& app, const Invocation& invocation);
int reserve_list(App& app, const Invocation& invocation);
int reserve_delete(App& app, const Invocation& invocation);
int node_drain(App& app, const Invocation& invocation);
int node_resume(App& app, const Invocation& invocation);
int node_fenced(App& app, const Invocation& invocation);
int node_forget(App& app, const Invocation& invocation);
int token_create(App& app, const Invocation& invocation);
int token_list(App& app, const Invocation& invocation);
int token_revoke(App& app, const Invocation& invocation);
int login(App& app, const Invocation& invocation);
int config_view(App& app, const Invocation& invocation);
int config_set(App& app, const Invocation& invocation);
int config_path(App& app, const Invocation& invocation);
int doctor(App& app, const Invocation& invocation);
int completion(App& app, const Invocation& invocation);
int complete(App& app, const Invocation& invocation);
int explain(App& app, const Invocation& invocation);
int api(App& app, const Invocation& invocation);
int version(App& app, const Invocation& invocation);
int up(App& app, const Invocation& invocation);
int bench(App& app, const Invocation& invocation);
int manual(App& app, const Invocation& invocation);

/// The columns of a job list, for ps and for csv or custom forms of one job.
std::vector<Column> job_columns();

}  // namespace muster::cli::verbs
