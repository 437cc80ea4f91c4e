#include "simulator/client.h"

#include <utility>

namespace muster::simulator {

void Clients::ask(core::Event event, Done done) {
    const std::uint64_t id = next_++;
    asks_.emplace(id, Ask{std::move(event), std::move(done)});
    queue_.after({random_.between(1, 5)}, [this, id] { try_now(id); });
}

void Clients::try_now(std::uint64_t id) {
    const auto ask = asks_.find(id);
    if (ask == asks_.end()) return;
    if (ask->second.tries++ > 0) tally_.hit("client.asks-again");
    retry(id, {random_.between(2'000, 6'000)});
    if (loss_per_mille_ != 0 && random_.chance(loss_per_mille_)) {
        tally_.hit("client.request-lost");
        return;
    }
    reach_(ask->second.event, [this, id](const Result<core::Answer>& answer) {
        if (loss_per_mille_ != 0 && random_.chance(loss_per_mille_)) {
            tally_.hit("client.answer-lost");
            return;
        }
        queue_.after({random_.between(1, 5)}, [this, id, answer] { heard(id, answer); });
    });
}

void Clients::heard(std::uint64_t id, const Result<core::Answer>& answer) {
    const auto ask = asks_.find(id);
    if (ask == asks_.end()) return;  // An earlier answer of the same request came first.
    const bool later = !answer && (answer.error().code == Code::NoSpace ||
                                   answer.error().code == Code::Unavailable);
    if (later) return;  // The retry is under way already.
    if (answer && answer->repeated) tally_.hit("client.repeated-answer");
    const Done done = std::move(ask->second.done);
    asks_.erase(ask);
    done(answer);
}

void Clients::retry(std::uint64_t id, Duration wait) {
    queue_.after(wait, [this, id] { try_now(id); });
}

}  // namespace muster::simulator
