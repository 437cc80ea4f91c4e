// docs/queue-reference.md, made from the tables that read queue files.
#include <string>

#include "spec/queue_file.h"

namespace muster::spec {
namespace {

constexpr std::string_view kIntroduction = R"(# Queue reference

<!-- Made from the tables in src/spec/queue_reader.cc; UPDATE=1 spec_test rewrites it. -->

Queues are a tree; jobs wait in its leaves. A file of `muster queues apply -f` has `queues`,
`rules` or both. controller.yaml takes the same two, as `queues` and `scheduling`.

```yaml
queues:
  research:
    guarantee: {gpus: 64, h100: 32}
    queues:
      nlp: {guarantee: {gpus: 32}, users: [ana, wei]}
      vision: {}
  batch: {policy: fifo, limit: {gpus: 16}, job_limit: {time: 2d}}
rules: {half_life: 7d}
```

A queue's name is that of all above it and its own: a job says `queue: research/nlp`. Where the
queues have no settings, a list of names will do: `queues: [prod, dev]`.

- **Resources** are `gpus` (every device of any class), a kind (`h100`) or a class (`npu`) of
  device, `cpus` and `memory`. Devices and CPUs have at most three decimals; `none` takes a bound
  away.
- What a queue uses counts for all queues above it. The guarantees inside a queue are parts of its
  own: their sum must not be more.
- An unknown key, a repeated one or a value out of range is an error, told with line and column;
  all errors are told at once, and nothing is changed then.

)";

std::string code(std::string_view text) {
    return "`" + std::string(text) + "`";
}

std::string table(const std::vector<QueueField>& fields) {
    std::string out = "| field | default | |\n|---|---|---|\n";
    for (const QueueField& field : fields)
        out += "| " + code(std::string(field.name) + ": " + std::string(field.value)) + " | " +
               std::string(field.fallback) + " | " + std::string(field.help) + " |\n";
    return out;
}

}  // namespace

std::string queue_reference() {
    return std::string(kIntroduction) + "## Fields of a queue\n\n" + table(queue_fields()) +
           "\n`queues` holds the queues inside it.\n\n## Rules of the whole cluster\n\n" +
           table(rule_fields());
}

}  // namespace muster::spec
