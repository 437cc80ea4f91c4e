"""Trains a small network on handwritten digits with PyTorch DistributedDataParallel (gloo, CPU).

Runs under Muster (examples/digits-ddp.yaml), under torchrun, or alone. Survives the death of any
rank: started again with the same number of ranks it goes on from the newest complete checkpoint
and ends with the very same weights, bit for bit.
"""
import argparse
import datetime
import hashlib
import os
import sys
import time

# More threads than the CPUs given cost more than they do. Read when torch is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402

try:
    import muster
except ImportError:
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
    import muster


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--steps", type=int, default=300, help="optimizer steps in all (300)")
    add("--batch", type=int, default=240, help="samples a step, of all ranks (240)")
    add("--lr", type=float, default=0.002, help="learning rate of Adam (0.002)")
    add("--seed", type=int, default=1, help="of weights and order of samples (1)")
    add(
        "--checkpoint-every",
        type=int,
        default=20,
        metavar="STEPS",
        help="between two checkpoints (20)",
    )
    add("--keep", type=int, default=3, help="checkpoints to keep (3)")
    add("--step-ms", type=float, default=0.0, help="pause a step, so that it lasts (0)")
    add(
        "--timeout",
        type=float,
        default=20.0,
        metavar="S",
        help="a peer silent for so long is dead (20; gloo's own is 1800)",
    )
    return parser.parse_args()


def from_environment(*names, default):
    return next((os.environ[name] for name in names if os.environ.get(name)), default)


def start_group(timeout):
    """Joins the gang by env://; the names are torchrun's, else Muster's of a per-node launch.

    Returns (rank, world size, group).
    """
    rank = int(from_environment("RANK", "MUSTER_NODE_RANK", "PET_NODE_RANK", default="0"))
    world = int(from_environment("WORLD_SIZE", "MUSTER_NUM_NODES", "PET_NNODES", default="1"))
    port = "0" if world == 1 else "29500"
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world))
    for name, default in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", port)):
        os.environ[name] = from_environment(name, "MUSTER_" + name, "PET_" + name, default=default)
    # Ranks may start apart (a cold disk); once they train, silence means death: so a second group
    # with a time-out of its own.
    dist.init_process_group("gloo", init_method="env://", timeout=datetime.timedelta(minutes=2))
    return rank, world, dist.new_group(timeout=datetime.timedelta(seconds=timeout))


def load_data():
    """The 1,797 digits: every fifth is for the test, the others for training."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16.0
    labels = torch.tensor(digits.target, dtype=torch.int64)
    test = torch.arange(len(labels)) % 5 == 0
    return (images[~test], labels[~test]), (images[test], labels[test])


def samples_of(step, count, batch, seed):
    """The indices of this step's batch: epochs of shuffled samples, a pure function of the step."""
    per_epoch = count // batch
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step // per_epoch)
    begin = step % per_epoch * batch
    return torch.randperm(count, generator=generator)[begin : begin + batch]


def resume(model, optimizer, rank, group):
    """Rank 0 finds the newest complete checkpoint and hands it to all. Returns the step to do."""
    box = [None]
    if rank == 0:
        path = muster.latest_checkpoint()
        if path:
            box[0] = torch.load(path)
            print("resuming from %s: step %d" % (path, box[0]["step"]), flush=True)
    dist.broadcast_object_list(box, src=0, group=group)
    if box[0] is None:
        return 0
    model.load_state_dict(box[0]["model"])
    optimizer.load_state_dict(box[0]["optimizer"])
    return box[0]["step"]


def anyone(flag, group):
    """Whether any rank says so. All ranks must ask at the same step."""
    votes = torch.tensor([int(flag)])
    dist.all_reduce(votes, op=dist.ReduceOp.MAX, group=group)
    return bool(votes.item())


def train(options):
    rank, world, group = start_group(options.timeout)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    (images, labels), test = load_data()
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    first = resume(model, optimizer, rank, group)
    ddp = nn.parallel.DistributedDataParallel(model, process_group=group)
    # After its first backward pass DDP regroups the gradients, and with them the order of the sums.
    # One pass that does not count makes a resumed run add in the same order as one that was never
    # interrupted.
    ddp(images[:1]).sum().backward()

    def write(path):
        state = {"step": done, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, path)

    done, begin = first, time.monotonic()
    for step in range(first, options.steps):
        mine = samples_of(step, len(labels), options.batch, options.seed)[rank::world]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(images[mine]), labels[mine])
        loss.backward()
        optimizer.step()
        time.sleep(options.step_ms / 1000.0)
        done = step + 1
        rate = options.batch * (done - first) / (time.monotonic() - begin)
        muster.progress(done, options.steps, loss=loss.item(), samples_per_s=rate)
        if rank == 0 and (done % 50 == 0 or done == options.steps):
            told = (done, options.steps, loss.item(), rate)
            print("step %d/%d loss %.4f %.0f samples/s" % told, flush=True)
        stop = anyone(muster.should_stop(), group)
        if rank == 0 and (stop or done % options.checkpoint_every == 0 or done == options.steps):
            muster.save(done, write, ext="pt", keep=options.keep)
        if stop and done < options.steps:
            dist.barrier(group)  # Nobody leaves before the save is on disk.
            print("rank %d: asked to stop; saved at step %d" % (rank, done), flush=True)
            muster.saved(done)
            return
    dist.barrier(group)
    if rank == 0:
        report(model, test)
    muster.done()


def report(model, test):
    with torch.no_grad():
        right = (model(test[0]).argmax(dim=1) == test[1]).float().mean().item()
    weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    print("weights %s" % hashlib.sha256(weights).hexdigest()[:16])
    print("test accuracy %.4f on %d digits" % (right, len(test[1])), flush=True)


def main():
    options = arguments()
    try:
        train(options)
        code = 0
    except RuntimeError as error:  # gloo: a peer closed its connection, or was silent for too long.
        reason = str(error).splitlines()[0]
        print("rank %s: %s" % (os.environ.get("RANK", "?"), reason), file=sys.stderr, flush=True)
        code = 1
    sys.stdout.flush()
    os._exit(code)  # Without gloo's farewell, which may wait for a peer that is gone.


if __name__ == "__main__":
    main()
