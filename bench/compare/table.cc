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
         "seed, as the published run had it. It matters: with random ties fgd falls below "
         "bestfit.\n\n"
         "`muster` is the production planner on the same streams, each pod queued, planned and "
         "started like any job, with the\n"
         "same order of nodes. fgd is told the whole list of pods before the first comes; Muster "
         "knows those that run and the\n"
         "one that waits. Its measure was chosen by looking at these same lists and seeds: no list "
         "was\n"
         "held out. Its bound: not below our own fgd in the mean, seed by seed.",
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
        {"pollux", "Training with a model of each application",
         "Trace: 8 workloads of 160 jobs in 8 hours (load 1.0) and six measured applications of "
         "the "
         "Pollux paper (Qiao et\n"
         "al., OSDI 2021); 16 nodes of 4 GPUs. The workloads of the other loads are drawn from "
         "Philly as the authors'\n"
         "program does; the same draw gives the published ones at load 1.0, job by job. A job's "
         "speed follows from its\n"
         "placement and batch, its progress from the batch and the epoch; a restart costs 30 s. "
         "The figure is the average\n"
         "JCT, the mean and spread over workloads. *Published*: the authors' simulator, in ticks "
         "of "
         "60 s.\n\n"
         "`tiresias`: jobs tuned to a number of GPUs and a batch each. `muster`: the production "
         "scheduler, queue policy las,\n"
         "jobs elastic from one GPU to the number that they were tuned for, with their tuned "
         "batch; "
         "`muster_adaptive`: they\n"
         "choose the batch that is best for what they hold, as the authors' jobs do. Beside both "
         "stands the authors' own\n"
         "policy, which sees a model of each job's speed and progress; Muster's scheduler sees "
         "none. Each GPU is a node of\n"
         "its own here and each machine a leaf, since Muster's elastic jobs grow by nodes.",
         pollux},
        {"gavel", "Kinds: a cluster of three generations",
         "Trace: streams of jobs drawn by the Gavel paper's authors' generator (Narayanan et al., "
         "OSDI 2020; seeds 0 to 2)\n"
         "and measured speeds of 26 types of jobs on V100, P100, K80; 36 GPUs of each. Rounds of "
         "360 s, shares anew at\n"
         "most every 1,920 s. The figure is the average JCT of jobs 4000 to 4999, the mean and "
         "spread over seeds, at so many\n"
         "arrivals an hour: `las` max-min of time, `gavel` max-min of progress "
         "(heterogeneity-aware "
         "LAS), `fifo_perf` in\n"
         "order of arrival on the fastest kind. *Published*: the authors' notebooks. Plain FIFO is "
         "left out: the published\n"
         "run and the released code disagree on it.\n\n"
         "The shares have many optima below saturation; as the authors did, an interior-point "
         "solver's is taken, near the\n"
         "middle of them. Near saturation (from 4.8 on, single) a few long jobs decide, and seeds "
         "spread widely.\n\n"
         "Several GPUs a job (`multi`): 70 % of the jobs ask for 1 GPU, 10 % for 2, 15 % for 4, "
         "5 % for 8. These streams are\n"
         "not those of the published run: at 0.2 arrivals an hour, where nobody waits, that "
         "printed "
         "16.91 h for fifo_perf,\n"
         "while the measured jobs of the streams take 15.24 h, each on its fastest kind. So no "
         "bound is set there.\n\n"
         "`muster`: the production scheduler, queue policy las; jobs name the kinds that they run "
         "on, their fastest first, and\n"
         "nobody knows how long they will run. It moves no job that runs to a faster kind, so it "
         "saturates earlier than policies\n"
         "that move all jobs in every round at no cost.",
         gavel},
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
        {"muri_muster", "Queueing: the production scheduler on the Muri paper's traces",
         "The same traces and cluster, through the production core and scheduler, which are not "
         "told how long jobs run:\n"
         "queue policy `las`. *Published* is Tiresias's 2D-LAS, the best of the published policies "
         "without durations.\n\n"
         "A job that resumes makes no progress for as long as the published runs charge its model "
         "at each event (4 to 46 s);\n"
         "here it is charged at each resumption of that job alone. Progress is made only while it "
         "runs, at the published rate.\n"
         "How wide the policy's steps are, and which jobs go first within one, was chosen by "
         "looking "
         "at these four traces:\n"
         "none was held out.",
         muri_muster},
        {"philly", "Utilisation: virtual clusters shared three ways",
         "Trace: the 82,229 jobs of the public Philly subset that belong to the eleven virtual "
         "clusters with a known size,\n"
         "on 352 nodes of 8 GPUs; arrivals 1 to 12 times as fast as they came. The subset has few "
         "of the full trace's\n"
         "multi-GPU jobs (1.3 GPUs a job on average, against 1.9). Durations are not known to any "
         "of the three.\n\n"
         "*static*: each virtual cluster's nodes are its own, strict first in, first out. *fifo*: "
         "one queue for all, with\n"
         "backfill. *muster*: guarantees of those sizes, lent while idle and given back, with "
         "backfill, packing and\n"
         "defragmentation; preempted jobs save at once and lose nothing. Effective is the share of "
         "all GPUs whose jobs made\n"
         "progress, in samples of every ten minutes from the first arrival to the last; waits are "
         "of all jobs. A plan is\n"
         "made at most every 30 s.",
         philly},
    };
}

}  // namespace muster::compare
