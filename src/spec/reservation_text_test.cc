// Rows of what `muster reserve` is told, and of lists of hosts.
#include "spec/reservation_text.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "base/units.h"
#include "spec/host_list.h"

namespace muster::spec {
namespace {

const Time kNow = *parse_time("2026-12-01T08:00:00Z", {});

ReservationText text_of(std::string_view flags) {
    ReservationText text;
    for (const std::string_view word : split(flags, ' ')) {
        if (word.empty()) continue;
        const std::size_t equals = word.find('=');
        const std::string key(word.substr(0, equals));
        const std::string value(equals == word.npos ? "" : word.substr(equals + 1));
        for (const auto& [name, field] : {std::pair("name", &text.name),
                                          {"reason", &text.reason},
                                          {"nodes", &text.nodes},
                                          {"count", &text.count},
                                          {"gpus", &text.gpus},
                                          {"users", &text.users},
                                          {"queues", &text.queues},
                                          {"start", &text.start},
                                          {"end", &text.end},
                                          {"for", &text.duration},
                                          {"every", &text.every},
                                          {"zone", &text.zone},
                                          {"gap", &text.gap},
                                          {"twice", &text.twice},
                                          {"until", &text.until}})
            if (key == name) *field = value;
        if (key == "maintenance") text.maintenance = true;
    }
    return text;
}

std::string answer(const ReservationText& text) {
    ReservationOptions options;
    options.now = kNow;
    const auto parsed = parse_reservation(text, options);
    std::string out;
    if (const auto* problems = std::get_if<Problems>(&parsed)) {
        for (const Problem& problem : *problems)
            out += (out.empty() ? "" : " | ") + render_line(problem);
        return out;
    }
    for (const auto& [flag, value] : to_flags(std::get<ReservationAsk>(parsed)))
        out += (out.empty() ? "" : " ") + flag.substr(2) + (value.empty() ? "" : "=" + value);
    return out;
}

struct Row {
    const char* flags;
    const char* expected;
};

TEST(ReservationText, WhatIsAskedFor) {
    const Row rows[] = {
        {"nodes=n2,n[1-3] users=wei,ana,wei queues=prod start=2026-12-24T08:00 "
         "end=2026-12-24T20:00",
         "nodes=n1,n2,n3 users=ana,wei queues=prod start=2026-12-24T08:00:00Z "
         "end=2026-12-24T20:00:00Z zone=UTC twice=first"},
        {"count=4 gpus=H100:8 users=a for=4h name=r1 reason=demo",
         "name=r1 reason=demo count=4 gpus=h100:8 users=a start=2026-12-01T08:00:00Z "
         "end=2026-12-01T12:00:00Z zone=UTC twice=first"},
        {"count=1 gpus=any maintenance start=now+2h for=30m",
         "count=1 gpus=any:1 start=2026-12-01T10:00:00Z end=2026-12-01T10:30:00Z zone=UTC "
         "twice=first maintenance"},
        {"count=1 users=a start=2026-12-24T08:00+01:00 end=2026-12-25",
         "count=1 users=a start=2026-12-24T07:00:00Z end=2026-12-25T00:00:00Z zone=UTC "
         "twice=first"},
        {"count=1 users=a start=2026-12-24 for=1d every=week gap=skip until=2027-01-31",
         "count=1 users=a start=2026-12-24T00:00:00Z end=2026-12-25T00:00:00Z zone=UTC every=week "
         "gap=skip until=2027-01-31T23:59:59Z twice=first"},
    };
    for (const Row& row : rows) EXPECT_EQ(answer(text_of(row.flags)), row.expected) << row.flags;
}

TEST(ReservationText, EveryProblemIsToldAtOnce) {
    const Row rows[] = {
        {"",
         "--nodes: nodes are missing: name them (--nodes n1,n[2-4]) or give a number (--count 4) | "
         "--users: for whom? give --users, --queues or both, or --maintenance for nobody | "
         "--end: the end is missing: give --end TIME or --for 4h"},
        {"nodes=n[3-1] count=0 users=a maintenance start=soon for=4h end=2026-12-02",
         "--nodes: cannot be given together with --count | "
         "--nodes: 3-1: the range falls; write the smaller number first | "
         "--count: 0: must be a whole number in 1..100000 | "
         "--maintenance: nobody may run then; take --users and --queues away | "
         "--end: cannot be given together with --for | "
         "--start: soon: not a time; write 2026-12-24T08:00 (on the clock of --zone), "
         "2026-12-24T08:00+01:00, a date, or now+2h"},
        {"nodes=n1 gpus=h100 users=a for=1h",
         "--gpus: needs --count: named nodes are what they are"},
        {"count=1 gpus=h100:0 users=a for=1h",
         "--gpus: h100:0: the number of devices must be in 1..1024"},
        {"count=1 users=a for=1h gap=skip until=2027-01-01",
         "--gap: needs --every: it is of windows that come again | "
         "--until: needs --every: it is of windows that come again"},
        {"count=1 users=a for=2h every=dya gap=latr twice=both",
         "--every: dya: must be day or week; did you mean day? | "
         "--gap: latr: must be skip or later; did you mean later? | "
         "--twice: both: must be first or second"},
        {"count=1 users=a for=25h every=day",
         "--for: 1d1h: longer than the time to the next window, 1d"},
        {"count=1 users=a start=2026-12-24T08:00 end=2026-12-24T08:00",
         "--end: 2026-12-24T08:00:00Z: not after the start, 2026-12-24T08:00:00Z"},
        {"count=1 users=a start=2026-11-24T08:00 end=2026-11-24T09:00",
         "--end: 2026-11-24T09:00:00Z: has passed; it is 2026-12-01T08:00:00Z"},
        {"count=1 users=a for=400d", "--for: 400d: longer than the limit of 365d"},
        {"count=1 users=a start=2099-01-01 for=1h",
         "--start: 2099-01-01T00:00:00Z: more than ten years from now"},
        {"count=1 users=a for=1h every=day until=2026-11-30",
         "--until: 2026-11-30T23:59:59Z: before the start, 2026-12-01T08:00:00Z"},
        {"count=1 users=a for=1h zone=../etc/passwd",
         "--zone: ../etc/passwd: not the name of a time zone, as Europe/Berlin or UTC"},
        {"count=1 users=a for=1h name=a/b", "--name: a/b: at most 63 letters, digits and . _ -"},
    };
    for (const Row& row : rows) EXPECT_EQ(answer(text_of(row.flags)), row.expected) << row.flags;
}

TEST(ReservationText, TimesAreOnTheZonesClock) {
    if (!TimeZone::load("Europe/Berlin")) GTEST_SKIP() << "the package tzdata is missing";
    const Row rows[] = {
        {"start=2027-07-01T08:00 end=2027-07-01T10:00",
         "start=2027-07-01T06:00:00Z end=2027-07-01T08:00:00Z zone=Europe/Berlin twice=first"},
        {"start=2027-10-31T02:30 for=1h",
         "start=2027-10-31T00:30:00Z end=2027-10-31T01:30:00Z zone=Europe/Berlin twice=first"},
        {"start=2027-10-31T02:30 for=1h twice=second",
         "start=2027-10-31T01:30:00Z end=2027-10-31T02:30:00Z zone=Europe/Berlin twice=second"},
        {"start=2027-07-01 for=1h every=day until=2027-07-02",
         "start=2027-06-30T22:00:00Z end=2027-06-30T23:00:00Z zone=Europe/Berlin every=day "
         "gap=later until=2027-07-02T21:59:59Z twice=first"},
    };
    for (const Row& row : rows)
        EXPECT_EQ(answer(text_of("count=1 users=a zone=Europe/Berlin " + std::string(row.flags))),
                  "count=1 users=a " + std::string(row.expected));
    EXPECT_EQ(answer(text_of("count=1 users=a zone=Europe/Berlin start=2027-03-28T02:30 for=1h")),
              "--start: 2027-03-28T02:30: does not exist in Europe/Berlin, where the clock is put "
              "forward then; choose another time");
    EXPECT_EQ(answer(text_of("count=1 users=a zone=Europe/Berln for=1h")),
              "--zone: Europe/Berln: there is no such time zone; did you mean Europe/Berlin?");
}

TEST(ReservationText, ReadsBackAsItself) {
    for (const char* flags :
         {"nodes=n1 users=a start=2026-12-24T08:00 for=1h every=day twice=second gap=skip",
          "count=9 gpus=npu:3 queues=q,p/r for=1h every=week until=2027-01-01",
          "count=1 maintenance for=1s"}) {
        const std::string once = answer(text_of(flags));
        EXPECT_EQ(answer(text_of(once)), once);
    }
}

TEST(HostList, Expands) {
    const Row rows[] = {
        {"n1", "n1"},
        {"n[001-003,100]", "n001 n002 n003 n100"},
        {"n[9-11]", "n9 n10 n11"},
        {"r[1-2]n[1,3]-ib", "r1n1-ib r1n3-ib r2n1-ib r2n3-ib"},
        {"a, b[1-2],c.d_e-f", "a b1 b2 c.d_e-f"},
        {"n[1-2],n2", "n1 n2 n2"},
        {"n[08-10]", "n08 n09 n10"},
        {"", "!: a host's name is missing"},
        {"a,,b", "!a,,b: a host's name is missing"},
        {"n[1-2", "!n[1-2: a bracket is not closed"},
        {"n1-2]", "!n1-2]: not a host's name; letters, digits, . _ - and ranges in brackets"},
        {"n[]", "!: in brackets stand numbers and ranges, as in n[001-064,100]"},
        {"n[a-c]", "!a-c: in brackets stand numbers and ranges, as in n[001-064,100]"},
        {"n[5-1]", "!5-1: the range falls; write the smaller number first"},
        {"n[100-99]", "!100-99: the range falls; write the smaller number first"},
        {"n[1-1000]", "!1-1000: more than the limit of 100 hosts"},
        {"n[1-11]m[1-11]", "!n[1-11]m[1-11]: more than the limit of 100 hosts"},
        {"n[1-60],m[1-60]", "!n[1-60],m[1-60]: more than the limit of 100 hosts"},
        {"n[1-999999999999]",
         "!1-999999999999: in brackets stand numbers and ranges, as in n[001-064,100]"},
        {"a b", "!a b: not a host's name; letters, digits, . _ - and ranges in brackets"},
    };
    for (const Row& row : rows) {
        const auto hosts = expand_host_list(row.flags, 100);
        EXPECT_EQ(hosts ? join(*hosts, " ") : "!" + hosts.error().message, row.expected)
            << row.flags;
    }
}

}  // namespace
}  // namespace muster::spec
