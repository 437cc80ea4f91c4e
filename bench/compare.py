"""bench/run.sh compare --traces DIR [--quick] [--only NAME] [--seeds N] [--parallel N]: Muster beside published results.

One JSON line a figure on standard output, as they come. A full run writes docs/results.md from them; with --quick,
--only or --seeds that page is left alone. `--lines FILE` makes the page from lines kept of earlier runs. Ends with 1 if a figure is outside its bound or a comparison failed."""

import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "..", "build", "release", "bin", "compare_bench")
PAGE = os.path.join(HERE, "..", "docs", "results.md")

HEAD = """# Results beside published ones

Written by `bench/run.sh compare --traces DIR`; do not edit. Every figure comes from a run of this repository on public
traces, which are not part of it; `bench/README.md` says where to get them. *Published* is what others printed for their
own system or simulator; where it stands, the bound on the difference is that of the comparison. A policy that sees how
long jobs will run (SRTF, SRSF) is an oracle, no system could do so; it stands here because the published tables have it.
"""


def lines_of(arguments):
    """What the program prints, line by line, passed on as it comes; and how it ended."""
    figures = []
    with subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            figures.append(json.loads(line))
    return figures, process.returncode


def number(value, unit):
    if value is None:
        return ""
    if abs(value) >= 10000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 10 else f"{value:.3f}"


def table(figures):
    out = ["| figure | own | ± | published | difference | bound | |", "|---|---|---|---|---|---|---|"]
    for figure in figures:
        published, difference = figure.get("published"), ""
        if published is not None:
            difference = f"{figure['difference']:+.2f}" if "%" in figure["unit"] else \
                f"{(figure['value'] / published - 1) * 100:+.3f} %"
        inside = {True: "inside", False: "**outside**", None: ""}[figure.get("inside")]
        spread = number(figure.get("sd"), figure["unit"])
        if spread and figure.get("seeds"):
            spread += f" ({figure['seeds']} seeds)"
        cells = [f"`{figure['what']}`", f"{number(figure['value'], figure['unit'])} {figure['unit']}", spread,
                 number(published, figure["unit"]), difference, figure.get("bound", ""),
                 " ".join(filter(None, [inside, figure.get("note", "")]))]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out)


def page(sections, figures):
    parts = [HEAD]
    for section in sections:
        own = [figure for figure in figures if figure["section"] == section["section"]]
        if own:
            parts.append(f"## {section['title']}\n\n{section['about']}\n\n{table(own)}\n")
    return "\n".join(parts)


def write_page(figures):
    told = subprocess.run([PROGRAM, "--sections"], capture_output=True, text=True, check=True).stdout
    with open(PAGE, "w", encoding="utf-8") as out:
        out.write(page([json.loads(line) for line in told.splitlines()], figures))
    print(f"written: {os.path.relpath(PAGE)}", file=sys.stderr)


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--lines":
        with open(arguments[1], encoding="utf-8") as kept:
            write_page([json.loads(line) for line in kept])
        return 0
    if "--traces" not in arguments:
        sys.exit(__doc__)
    figures, code = lines_of(arguments)
    if code == 2:
        return 2
    outside = [figure["what"] for figure in figures if figure.get("inside") is False]
    for what in outside:
        print(f"outside its bound: {what}", file=sys.stderr)
    if code == 0 and not {"--quick", "--only", "--seeds", "--list"} & set(arguments):
        write_page(figures)
    return code or (1 if outside else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
