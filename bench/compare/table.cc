#include "compare.h"

namespace muster::compare {

std::vector<Comparison> comparisons() {
    return {
        {"fgd", "Fragmentation: allocation on the openb trace",
         "Trace: 1,213 nodes with 6,212 GPUs of the public 2023 \"openb\" trace, five of its pod "
         "lists; times are not\n"
         "used: pods come one by one in random order until 130 % of the capacity has been asked "
         "for, never leave, and a\n"
         "pod that fits nowhere is dropped. The figure is the share of GPUs given away at the end, "
         "the mean over seeds\n"
         "(orders of arrival) and the spread over them. *Published*: Weng et al., ATC 2023, mean "
         "of ten seeds.\n\n"
         "Tie rule: the highest integer score, then the first in a random order of the nodes that "
         "is drawn once for each\n"
         "seed, as the published run had it. It matters: with random ties fgd falls below bestfit.",
         fgd},
    };
}

}  // namespace muster::compare
