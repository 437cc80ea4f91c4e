// Every numbered error in one table: what the API, `muster explain` and docs/errors.md show.
// A number keeps its meaning for ever; the table decides which Code (so which status) it travels
// as.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

/// E1xxx job files and requests, E2xxx who may what, E3xxx against the present state, E4xxx why a
/// job does not start, E5xxx nodes, tasks and how they end, E9xxx the controller and the way to it.
namespace errors {

constexpr int kJobSyntax = 1001;
constexpr int kJobUnknownField = 1002;
constexpr int kJobOutOfRange = 1003;
constexpr int kJobBadValue = 1004;
constexpr int kJobFieldMissing = 1005;
constexpr int kJobTooLarge = 1006;
constexpr int kJobNotText = 1007;
constexpr int kJobUnreadable = 1008;
constexpr int kJobFieldsConflict = 1009;
constexpr int kJobUnsupported = 1010;
constexpr int kJobInvalid = 1200;
constexpr int kQueueUnknown = 1201;
constexpr int kDependencyUnknown = 1202;
constexpr int kTooManyJobs = 1204;
constexpr int kQueueNotLeaf = 1205;
constexpr int kQueueDenied = 1206;
constexpr int kQueueFull = 1207;
constexpr int kOverQueueLimit = 1208;
constexpr int kLevelUnknown = 1209;
constexpr int kQueueTree = 1210;
constexpr int kTopologyInvalid = 1211;
constexpr int kReservationInvalid = 1212;

constexpr int kBodySyntax = 1101;
constexpr int kBadParameter = 1102;
constexpr int kMediaType = 1103;
constexpr int kNoRoute = 1104;
constexpr int kMethod = 1105;
constexpr int kBodyTooLarge = 1106;
constexpr int kUpgradeNeeded = 1108;
constexpr int kBadCursor = 1109;
constexpr int kBodyMember = 1110;

constexpr int kNoCredentials = 2001;
constexpr int kTokenUnknown = 2002;
constexpr int kTokenExpired = 2003;
constexpr int kNotOwner = 2004;
constexpr int kAdminOnly = 2005;
constexpr int kUidUnknown = 2006;
constexpr int kRateLimit = 2007;
constexpr int kJoinRefused = 2008;
constexpr int kNameTaken = 2009;

constexpr int kJobNotFound = 3001;
constexpr int kJobEnded = 3002;
constexpr int kJobState = 3003;
constexpr int kChanged = 3004;
constexpr int kKeyReused = 3005;
constexpr int kCompacted = 3006;
constexpr int kNodeNotFound = 3007;
constexpr int kHoldOfOther = 3008;
constexpr int kTokenNotFound = 3009;
constexpr int kQueueNotFound = 3010;
constexpr int kPreconditionNeeded = 3011;
constexpr int kNodeInUse = 3012;
constexpr int kElementNotFound = 3013;
constexpr int kNoSuchRank = 3014;
constexpr int kNotRunning = 3015;
constexpr int kReservationNotFound = 3016;
constexpr int kQueueInUse = 3017;

constexpr int kNotEvaluated = 4001;
constexpr int kNeverFits = 4002;
constexpr int kNoNodes = 4003;
constexpr int kNotEnoughFree = 4004;
constexpr int kReserved = 4005;
constexpr int kNotEligible = 4006;
constexpr int kHeld = 4007;
constexpr int kDependency = 4008;
constexpr int kParallel = 4009;
constexpr int kQueueLimit = 4010;
constexpr int kBorrowLimit = 4011;
constexpr int kLendLimit = 4012;
constexpr int kUserLimit = 4013;
constexpr int kMaxJobs = 4014;
constexpr int kUserMaxJobs = 4015;
constexpr int kGuarantee = 4016;
constexpr int kBehindFirst = 4017;
constexpr int kWindow = 4018;
constexpr int kTopology = 4019;
constexpr int kVictims = 4020;

constexpr int kNodeUnreachable = 5001;
constexpr int kLogGone = 5002;
constexpr int kTunnelFailed = 5003;
constexpr int kLimitsUnenforced = 5004;
constexpr int kEndUserError = 5101;
constexpr int kEndOom = 5102;
constexpr int kEndTimeLimit = 5103;
constexpr int kEndDeadline = 5104;
constexpr int kEndLogRule = 5105;
constexpr int kEndImage = 5106;
constexpr int kEndLaunch = 5107;
constexpr int kEndNodeLost = 5108;
constexpr int kEndDeviceFault = 5109;
constexpr int kEndPreempted = 5110;
constexpr int kEndRequeued = 5111;
constexpr int kEndCancelled = 5112;
constexpr int kEndFenced = 5113;
constexpr int kEndPeer = 5114;
constexpr int kEndVanished = 5115;
constexpr int kEndResized = 5116;

constexpr int kInternal = 9001;
constexpr int kDiskFull = 9002;
constexpr int kNotReady = 9003;
constexpr int kCorrupt = 9004;
constexpr int kUnreachable = 9101;
constexpr int kNotTrusted = 9102;
constexpr int kBadAnswer = 9103;
constexpr int kBadConfig = 9104;

}  // namespace errors

struct ErrorCode {
    int number = 0;
    Code code = Code::Internal;
    std::string_view title;  // A few words.
    std::string_view meaning;
    std::string_view fix;
};

/// In rising order of number.
std::span<const ErrorCode> error_codes();
/// nullptr: there is no such number.
const ErrorCode* find_error_code(int number);
/// "E1203", "e1203" or "1203"; 0: not of that form.
int parse_error_number(std::string_view text);
/// "E1203".
std::string error_name(int number);

/// An Error of that number, with the table's Code and, if `fix` is "", its fix.
Error numbered(int number, std::string message, std::string cause = {}, std::string fix = {});
/// The number to show for an error that has none of its own: the most general one of its Code.
int number_of(const Error& error);

/// What `muster explain` prints, and a section of docs/errors.md.
std::string explain(const ErrorCode& entry);
/// docs/errors.md, as it has to be.
std::string errors_page();

}  // namespace muster
