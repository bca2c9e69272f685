//! Phrases that are looked for: words in order within one sentence, with few other words between them.

use super::Category::{self, InstructionOverride, SecretBypass};
use super::words::TextWord;
use std::collections::{HashMap, HashSet};

/// Phrase.
#[derive(Debug)]
pub(super) struct PhraseRule {
    pub(super) category: Category,
    pub(super) reason: &'static str,
    /// First words. After a word such as `never` the phrase means the opposite.
    begin: WordAlternatives,
    then: &'static [FollowingWords],
}

/// Alternatives, separated by commas. Each may be several words.
type WordAlternatives = &'static str;

/// Words that follow, after at most this number of other words.
#[derive(Debug)]
struct FollowingWords(usize, WordAlternatives);

const OVERRIDE: &str = "tells an agent to disregard its instructions";
const UNBOUND: &str = "tells an agent that no rules apply to it";
const CONCEAL: &str = "tells an agent to conceal something from users";
const EVADE: &str = "tells an agent to bypass its restrictions";
const REVEAL: &str = "asks for secrets to be shown";
const SEND: &str = "asks for secrets to be sent elsewhere";
const UNMASK: &str = "asks for secrets not to be masked";
const PLACE: &str = "names a location of secrets";

const DISREGARD: WordAlternatives =
    "ignore, disregard, forget, override, overrule, supersede, discard, pay no attention to";

const EARLIER: WordAlternatives =
    "previous, prior, above, earlier, preceding, foregoing, original, initial, system, your, developer";

const TOLD: WordAlternatives = "instruction, instructions, prompt, prompts, direction, directions, directive, \
    directives, guideline, guidelines, rule, rules, policy, policies, constraint, constraints, \
    restriction, restrictions, guardrail, guardrails, training, programming, orders, system message";

const EVADING: WordAlternatives =
    "bypass, circumvent, evade, disable, turn off, switch off, get around, break out of, escape";

const HOLDS: WordAlternatives = "approval, approvals, guardrail, guardrails, sandbox, safeguard, safeguards, audit, \
    audit log, safety checks, safety rules, safety filters, content filter, content filters, security \
    policy, security policies, security controls, egress policy, allowlist";

const SECRETS: WordAlternatives = "secret, secrets, credential, credentials, password, passwords, api key, api keys, \
    apikey, private key, private keys, ssh key, ssh keys, access token, access tokens, bearer token, \
    bearer tokens, auth token, auth tokens, secret key, secret keys, environment variables, env vars, \
    system prompt, session token, session tokens";

const OWN: WordAlternatives = "your, all, any, every, the system's, the host's, the user's";

const SENDING: WordAlternatives =
    "send, upload, post, transmit, forward, email, mail, submit, copy, push, deliver, report";

const AWAY: WordAlternatives = "to http, to https, to this url, to this address, to the following, to my, to our, to \
    me, webhook, to an external, to a remote";

/// All phrases.
const RULES: &[PhraseRule] = &[
    rule(InstructionOverride, OVERRIDE, DISREGARD, &[FollowingWords(3, EARLIER), FollowingWords(2, TOLD)]),
    rule(
        InstructionOverride,
        OVERRIDE,
        DISREGARD,
        &[
            FollowingWords(3, TOLD),
            FollowingWords(
                2,
                "above, before, you were given, you have been given, so far, given to you, you received",
            ),
        ],
    ),
    rule(
        InstructionOverride,
        OVERRIDE,
        DISREGARD,
        &[
            FollowingWords(0, "everything, anything, all, all of, what"),
            FollowingWords(3, "above, before this, told, you were told, said so far"),
        ],
    ),
    rule(
        InstructionOverride,
        OVERRIDE,
        "new system prompt, your new instructions are, these instructions override, this skill overrides, \
        takes precedence over your instructions, takes precedence over the system, takes precedence over \
        all other instructions",
        &[],
    ),
    rule(
        InstructionOverride,
        OVERRIDE,
        "im start, im end, endoftext, begin of text, start header id",
        &[FollowingWords(0, "system, user, assistant")],
    ),
    rule(
        InstructionOverride,
        UNBOUND,
        "you are now, you're now, act as, pretend to be, pretend you are, behave as",
        &[FollowingWords(
            3,
            "dan, jailbroken, unrestricted, unfiltered, uncensored, developer mode, god mode, without \
            restrictions, free of restrictions, no restrictions",
        )],
    ),
    rule(
        InstructionOverride,
        UNBOUND,
        "you are not bound by, you have no restrictions, no rules apply, rules do not apply to you, \
        jailbreak yourself",
        &[],
    ),
    rule(
        InstructionOverride,
        CONCEAL,
        "without telling, without informing, without notifying, without alerting",
        &[FollowingWords(1, "user, users, operator, human, anyone, anybody, owner")],
    ),
    rule(
        InstructionOverride,
        CONCEAL,
        "secretly, covertly",
        &[FollowingWords(
            2,
            "send, upload, copy, post, forward, transmit, add, insert, run, execute, install, change, modify",
        )],
    ),
    rule(InstructionOverride, EVADE, EVADING, &[FollowingWords(3, HOLDS)]),
    rule(
        SecretBypass,
        UNMASK,
        "bypass, circumvent, evade, disable, turn off, get around, avoid",
        &[FollowingWords(
            3,
            "redaction, masking, secret scanning, secret scanner, secret detection, secret filter, \
            secrets filter, credential filter",
        )],
    ),
    rule(
        SecretBypass,
        REVEAL,
        "reveal, leak, exfiltrate, disclose, divulge, dump, steal, harvest",
        &[FollowingWords(5, SECRETS)],
    ),
    rule(
        SecretBypass,
        REVEAL,
        "print, show, output, display, echo, repeat, write out, list, return, recite, tell me",
        &[FollowingWords(2, OWN), FollowingWords(3, SECRETS)],
    ),
    rule(SecretBypass, SEND, SENDING, &[FollowingWords(4, SECRETS), FollowingWords(6, AWAY)]),
    rule(
        SecretBypass,
        SEND,
        "encode, base64, hide, embed",
        &[
            FollowingWords(4, SECRETS),
            FollowingWords(
                6,
                "in the url, in a url, in the query, in dns, in the hostname, in an image, in a comment, \
                in your answer, in your output",
            ),
        ],
    ),
    rule(SecretBypass, PLACE, "ssh", &[FollowingWords(0, "id rsa, id ed25519, id ecdsa")]),
    rule(
        SecretBypass,
        PLACE,
        "aws credentials, etc shadow, proc self environ, gnupg private keys, docker config json",
        &[],
    ),
];

/// Words that address an agent. In visible text they are what a skill is for.
const ADDRESSES: WordAlternatives = "you must, you should, you will, you are, you need, you can, your task, do not, \
    don't, never, always, instead, secretly, assistant, agent, llm, language model, system, prompt, \
    instruction, instructions, execute, run, send, upload, fetch, download, curl, wget, ignore, \
    disregard, password, secret, secrets, credential, credentials, api key";

/// After one of these words the phrase means the opposite.
const NOT: WordAlternatives =
    "not, never, don't, dont, cannot, can't, won't, shouldn't, mustn't, nor, to not, not ever";

const fn rule(
    category: Category,
    reason: &'static str,
    begin: WordAlternatives,
    then: &'static [FollowingWords],
) -> PhraseRule {
    PhraseRule { category, reason, begin, then }
}

/// Returns the first phrase, with its byte range.
pub(super) fn first(words: &[TextWord]) -> Option<(&'static PhraseRule, usize, usize)> {
    // Most words begin no phrase.
    let mut by_first_word: HashMap<&str, Vec<&'static PhraseRule>> = HashMap::new();
    for rule in RULES {
        let first_words: HashSet<_> =
            rule.begin.split(", ").filter_map(|phrase| phrase.split(' ').next()).collect();
        for word in first_words {
            by_first_word.entry(word).or_default().push(rule);
        }
    }
    (0..words.len()).find_map(|at| {
        let rules = by_first_word.get(words[at].sound.as_str())?;
        rules.iter().find_map(|rule| {
            let last = matched(words, at, rule)?;
            (!is_negated(words, at)).then(|| (*rule, words[at].from, words[last].to))
        })
    })
}

/// Returns true if the words address an agent.
pub(super) fn addresses(words: &[TextWord]) -> bool {
    (0..words.len()).any(|at| one_of(words, at, ADDRESSES).is_some())
}

/// Returns the index of the last word of the phrase that begins there.
fn matched(words: &[TextWord], at: usize, rule: &PhraseRule) -> Option<usize> {
    let begin = one_of(words, at, rule.begin)?;
    followed(words, begin, rule.then)
}

fn followed(words: &[TextWord], last: usize, then: &[FollowingWords]) -> Option<usize> {
    let Some((FollowingWords(within, next), then)) = then.split_first() else { return Some(last) };
    for at in last + 1..=last + 1 + within {
        if words.get(at - 1).is_none_or(|before| before.is_last) {
            return None;
        }
        let found = one_of(words, at, next).and_then(|last| followed(words, last, then));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns the index of the last word of the longest alternative that stands there.
fn one_of(words: &[TextWord], at: usize, any: WordAlternatives) -> Option<usize> {
    any.split(", ").filter_map(|phrase| stands(words, at, phrase)).max()
}

fn stands(words: &[TextWord], at: usize, phrase: &str) -> Option<usize> {
    let mut last = None;
    for (place, part) in (at..).zip(phrase.split(' ')) {
        let is_there = words.get(place).is_some_and(|word| word.sound == part);
        let is_broken = place > at && words[place - 1].is_last;
        if !is_there || is_broken {
            return None;
        }
        last = Some(place);
    }
    last
}

fn is_negated(words: &[TextWord], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| words.get(before));
    before.is_some_and(|before| !before.is_last && NOT.split(", ").any(|not| before.sound == not))
}
