#include "net/pki.h"

#include <set>

#include <gtest/gtest.h>

namespace muster::net {
namespace {

constexpr Duration kDay{24 * 3600 * 1000};
constexpr Time kNow{1'796'000'000'000};
constexpr Time kLater{kNow.ms + 90 * kDay.ms};

KeyedCertificate ca() {
    return *make_ca("muster CA", kNow - kDay, Time{kNow.ms + 3650 * kDay.ms});
}
CertificateAsk ask(std::string name) {
    return {.name = std::move(name),
            .hosts = {"node1.example", "10.0.0.7", "::1"},
            .use = {.server = true, .client = true},
            .not_before = kNow,
            .not_after = kLater};
}

TEST(Pki, AnIssuedCertificateSaysWhatWasAskedFor) {
    const KeyedCertificate authority = ca();
    const auto issued = issue_certificate(authority, ask("node1"));
    ASSERT_TRUE(issued) << issued.error().cause;
    const auto facts = certificate_facts(issued->certificate_pem);
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->name, "node1");
    EXPECT_EQ(facts->issuer, "muster CA");
    EXPECT_EQ(facts->hosts, (std::vector<std::string>{"node1.example", "10.0.0.7", "::1"}));
    EXPECT_EQ(facts->not_before, kNow);
    EXPECT_EQ(facts->not_after, kLater);
    EXPECT_EQ(facts->use, (CertificateUse{.server = true, .client = true}));
    EXPECT_FALSE(facts->is_ca);
    EXPECT_EQ(facts->serial.size(), 32U);
    EXPECT_EQ(facts->sha256.size(), 64U);
    EXPECT_TRUE(verify_key(*issued));
    EXPECT_TRUE(certificate_facts(authority.certificate_pem)->is_ca);
}

TEST(Pki, SerialsAndKeysAreNeverTheSameTwice) {
    const KeyedCertificate authority = ca();
    const auto a = issue_certificate(authority, ask("a"));
    const auto b = issue_certificate(authority, ask("a"));
    EXPECT_NE(certificate_facts(a->certificate_pem)->serial,
              certificate_facts(b->certificate_pem)->serial);
    EXPECT_FALSE(verify_key({a->certificate_pem, b->key_pem}));
}

TEST(Pki, VerifiesUnderItsOwnCaAndInItsOwnTimeOnly) {
    const KeyedCertificate authority = ca();
    const auto issued = issue_certificate(authority, ask("node1"));
    EXPECT_TRUE(verify_certificate(issued->certificate_pem, authority.certificate_pem, kNow));
    const auto other = verify_certificate(issued->certificate_pem, ca().certificate_pem, kNow);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, Code::Denied);
    const auto late =
        verify_certificate(issued->certificate_pem, authority.certificate_pem, kLater + seconds(1));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().cause, "certificate has expired");
    EXPECT_FALSE(
        verify_certificate(issued->certificate_pem, authority.certificate_pem, kNow - seconds(1)));
}

TEST(Pki, ALeafCannotSignAnotherLeaf) {
    const KeyedCertificate authority = ca();
    const auto leaf = issue_certificate(authority, ask("node1"));
    const auto forged = issue_certificate(*leaf, ask("node2"));
    ASSERT_TRUE(forged);
    EXPECT_FALSE(verify_certificate(forged->certificate_pem, authority.certificate_pem, kNow));
    EXPECT_FALSE(verify_certificate(forged->certificate_pem, leaf->certificate_pem, kNow));
}

TEST(Pki, TheKeyOfASigningRequestNeverTravels) {
    const KeyedCertificate authority = ca();
    const auto request = make_signing_request("wanted-name");
    ASSERT_TRUE(request);
    EXPECT_EQ(request->request_pem.find("PRIVATE"), std::string::npos);
    EXPECT_EQ(*signing_request_name(request->request_pem), "wanted-name");
    const auto signed_pem = sign_request(authority, request->request_pem, ask("given-name"));
    ASSERT_TRUE(signed_pem);
    EXPECT_EQ(certificate_facts(*signed_pem)->name, "given-name");
    EXPECT_TRUE(verify_key({*signed_pem, request->key_pem}));
}

TEST(Pki, ARequestThatWasTamperedWithIsRefused) {
    const KeyedCertificate authority = ca();
    std::string pem = make_signing_request("node1")->request_pem;
    std::size_t refused = 0;
    for (std::size_t i = 40; i < pem.size() - 40; i += 7) {
        std::string bent = pem;
        bent[i] = bent[i] == 'A' ? 'B' : 'A';
        if (!sign_request(authority, bent, ask("node1"))) ++refused;
    }
    EXPECT_EQ(refused, (pem.size() - 80 + 6) / 7);
}

TEST(Pki, WhatIsNoPemIsAnErrorWithAFix) {
    for (const char* bad :
         {"", "x", "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n"}) {
        const auto facts = certificate_facts(bad);
        ASSERT_FALSE(facts);
        EXPECT_EQ(facts.error().code, Code::Invalid);
        EXPECT_NE(facts.error().fix, "");
        EXPECT_FALSE(signing_request_name(bad));
        EXPECT_FALSE(issue_certificate({bad, bad}, ask("a")));
    }
}

TEST(Pki, NamesAndHostsAreChecked) {
    const KeyedCertificate authority = ca();
    EXPECT_FALSE(issue_certificate(authority, ask("")));
    EXPECT_FALSE(issue_certificate(authority, ask(std::string(65, 'n'))));
    EXPECT_FALSE(issue_certificate(authority, ask("a\nb")));
    EXPECT_TRUE(issue_certificate(authority, ask("节点一")));
    CertificateAsk bad_host = ask("a");
    bad_host.hosts = {"a b"};
    EXPECT_FALSE(issue_certificate(authority, bad_host));
    CertificateAsk comma = ask("a");
    comma.hosts = {"a,DNS:controller.muster"};
    const auto issued = issue_certificate(authority, comma);
    ASSERT_TRUE(issued);
    EXPECT_EQ(certificate_facts(issued->certificate_pem)->hosts.size(), 1U);
    CertificateAsk never = ask("a");
    never.not_after = never.not_before;
    EXPECT_FALSE(issue_certificate(authority, never));
}

TEST(Pki, RenewalIsDueAfterTwoThirds) {
    const CertificateFacts facts{.not_before = kNow, .not_after = Time{kNow.ms + 90 * kDay.ms}};
    EXPECT_FALSE(renewal_due(facts, Time{kNow.ms + 59 * kDay.ms}));
    EXPECT_TRUE(renewal_due(facts, Time{kNow.ms + 60 * kDay.ms}));
    EXPECT_TRUE(renewal_due(facts, Time{kNow.ms + 900 * kDay.ms}));
}

TEST(Crypto, HashesAreTheStandardsOwn) {
    // FIPS 180-2, appendix B.1; RFC 4231, case 2.
    EXPECT_EQ(sha256_hex("abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    EXPECT_TRUE(equal_constant_time("secret", "secret"));
    EXPECT_FALSE(equal_constant_time("secret", "secreT"));
    EXPECT_FALSE(equal_constant_time("secret", "secret1"));
    EXPECT_TRUE(equal_constant_time("", ""));
}

TEST(Crypto, TokensAreLongAndNeverTheSame) {
    std::set<std::string> seen;
    for (int i = 0; i < 200; ++i) {
        const std::string token = make_api_token();
        EXPECT_EQ(token.size(), 51U);
        EXPECT_TRUE(token.starts_with("MUSTER_pat_"));
        EXPECT_TRUE(seen.insert(token).second);
    }
    std::set<char> letters;
    for (const char c : random_base62(20'000)) letters.insert(c);
    EXPECT_EQ(letters.size(), 62U);
}

struct TokenRow {
    const char* name;
    std::string text;
    const char* cause;  // "" = good.
};
void PrintTo(const TokenRow& row, std::ostream* out) {
    *out << row.name;
}

const std::string kId = "aB3dE6gH";
const std::string kSecret(40, 'x');
const std::string kHash(64, 'a');
const std::string kGood = "MUSTER_join_" + kId + "." + kSecret + "." + kHash + "@";

const TokenRow kTokens[] = {
    {"good", kGood + "ctl.example:7071", ""},
    {"space-around", "  " + kGood + "ctl:1\n", ""},
    {"ipv6", kGood + "[::1]:7071", ""},
    {"empty", "", "it is empty"},
    {"api-token", "MUSTER_pat_" + kSecret, "it is an API token (MUSTER_pat_...)"},
    {"other-text", "hello", "it does not start with MUSTER_join_"},
    {"cut-off", kGood.substr(0, 60), "it may be cut off"},
    {"two-parts", "MUSTER_join_" + kId + "." + kHash + "@a:1", "it has 2 parts"},
    {"short-secret", "MUSTER_join_" + kId + ".abc." + kHash + "@a:1", "its secret has 3"},
    {"odd-id", "MUSTER_join_a-3dE6gH." + kSecret + "." + kHash + "@a:1", "its id \"a-3dE6gH\""},
    {"short-hash", "MUSTER_join_" + kId + "." + kSecret + ".abc@a:1", "its CA hash has 3"},
    {"upper-hash", "MUSTER_join_" + kId + "." + kSecret + "." + std::string(64, 'A') + "@a:1",
     "64 digits of 0-9a-f"},
    {"no-port", kGood + "ctl", "has no port"},
    {"port-0", kGood + "ctl:0", "port that is not 1 to 65535"},
    {"port-70000", kGood + "ctl:70000", "port that is not 1 to 65535"},
    {"port-word", kGood + "ctl:x", "port that is not 1 to 65535"},
    {"no-host", kGood + ":7071", "has no host"},
    {"bare-ipv6", kGood + "::1:7071", "IPv6 address without brackets"},
    {"slash", kGood + "a/b:7071", "no host name"},
    {"huge", kGood + std::string(600, 'h') + ":1", "at most 512"},
};

class JoinTokenText : public ::testing::TestWithParam<TokenRow> {};

TEST_P(JoinTokenText, IsReadOrRefusedWithItsCause) {
    const auto token = parse_join_token(GetParam().text);
    if (*GetParam().cause == '\0') {
        ASSERT_TRUE(token) << token.error().cause;
        EXPECT_EQ(*parse_join_token(format_join_token(*token)), *token);
        return;
    }
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code, Code::Invalid);
    EXPECT_NE(token.error().cause.find(GetParam().cause), std::string::npos) << token.error().cause;
    EXPECT_NE(token.error().fix.find("muster token create"), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(Rows, JoinTokenText, ::testing::ValuesIn(kTokens));

TEST(JoinToken, AFreshOneComesBackFromItsText) {
    const JoinToken token = make_join_token(kHash, "10.0.0.1:7071");
    EXPECT_EQ(*parse_join_token(format_join_token(token)), token);
    EXPECT_EQ(format_join_token(token).find_first_of(" \t\n'\"$`\\;|&"), std::string::npos);
}

}  // namespace
}  // namespace muster::net
