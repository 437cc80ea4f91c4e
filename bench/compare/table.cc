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
        {"muri", "Queueing: the Muri paper's simulator",
         "Traces: trace1 (1,494 jobs) and trace3 (992 jobs) of Zhao et al., SIGCOMM 2022, derived "
         "from two virtual\n"
         "clusters of Philly, and the same with all jobs submitted at once (`_pr`); 64 GPUs in 8 "
         "nodes. *Published*: the\n"
         "authors' raw numbers. Of their policies SRTF, SRSF and Tiresias's 2D-LAS are replayed; "
         "Muri's own and AntMan\n"
         "need its models of interference, Themis its auctions: not run here.\n\n"
         "Quirk: the published runs charge each job's start-up overhead to everything that runs at "
         "every event, whether\n"
         "preempted or not. The lines with `_clean` are the same runs without it. Ties: stable, in "
         "order of submission.",
         muri},
        {"testbed", "Fidelity: a run measured on 64 GPUs",
         "Trace: the 400 jobs (61,344 GPU-hours) that the Muri paper's authors ran on 64 V100. "
         "*Published* is what they\n"
         "measured; own is the simulator, with the overhead quirk and (`_clean`) without.",
         testbed},
        {"ettr", "Reliability: effective training time",
         "No trace: gangs for 54 days with exponential failures of nodes at the published rates "
         "(3.8 in 1,000 node-days:\n"
         "`ettr_54d`, 2,048 nodes; 6.5: the others), a checkpoint of d seconds at the interval "
         "that Muster chooses, R seconds\n"
         "to be back. *Published*: the exact formula of the renewal argument for the same "
         "interval.",
         ettr},
        {"zeus", "Energy: power limits alone",
         "Trace: time and power by power limit of six training jobs on V100 (You et al., NSDI "
         "2023), default batch sizes.\n"
         "The figure is the energy to the target that the best power limit saves against the "
         "highest; a cluster manager does\n"
         "not choose batch sizes, so the paper's larger savings are not claimed. *Published*: an "
         "independent calculation from\n"
         "the same data.",
         zeus},
    };
}

}  // namespace muster::compare
