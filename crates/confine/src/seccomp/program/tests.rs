//! The compiled tree against the list that it comes from.

use super::*;
use crate::seccomp::policy::{Audience, UNLISTED, guard, rules, rules_under_guard};

fn call(number: u32, arguments: [u64; 6]) -> Call {
    Call { architecture: ARCHITECTURE, number, arguments }
}

fn reference(rules: &[Rule], call: &Call) -> FilterAction {
    if call.architecture != ARCHITECTURE || call.number >= X32_BIT {
        return FilterAction::Errno(libc::EPERM as u16);
    }
    let verdict = rules.iter().find(|rule| rule.number == call.number).map_or(UNLISTED, |rule| rule.verdict);
    let holds = |condition: &Condition| {
        let masked = call.arguments[usize::from(condition.argument)] as u32 & condition.mask;
        match condition.comparison {
            Comparison::Is(value) => masked == value,
            Comparison::IsNot(value) => masked != value,
            Comparison::OneOf(values) => values.contains(&masked),
        }
    };
    match verdict {
        Verdict::Allow => FilterAction::Allow,
        Verdict::Refuse(errno) => FilterAction::Errno(errno),
        Verdict::Ask => FilterAction::Ask,
        Verdict::AllowIf { any_of, .. } | Verdict::AskUnless { any_of }
            if any_of.iter().any(|group| group.iter().all(holds)) =>
        {
            FilterAction::Allow
        }
        Verdict::AskUnless { .. } => FilterAction::Ask,
        Verdict::AllowIf { otherwise, .. } => FilterAction::Errno(otherwise),
    }
}

/// Returns every value that some condition compares with, and its neighbours.
fn interesting_values() -> Vec<u64> {
    let mut values = vec![0, u64::MAX, 0x1_0000_5412];
    for rule in rules(Audience::Everyone) {
        let Verdict::AllowIf { any_of, .. } = rule.verdict else { continue };
        for condition in any_of.concat() {
            let compared: &[u32] = match &condition.comparison {
                Comparison::Is(value) | Comparison::IsNot(value) => std::slice::from_ref(value),
                Comparison::OneOf(values) => values,
            };
            for value in compared.iter().copied().map(u64::from) {
                values.extend([value, value + 1, u64::from(condition.mask & 0x1000_0000)]);
            }
        }
    }
    values
}

/// A small deterministic generator: the same cases on every machine.
fn random_calls(count: usize) -> impl Iterator<Item = Call> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let interesting = interesting_values();
    let rules = rules(Audience::Everyone);
    let conditional: Vec<u32> = rules
        .iter()
        .filter(|rule| matches!(rule.verdict, Verdict::AllowIf { .. }))
        .map(|rule| rule.number)
        .collect();
    (0..count).map(move |_| {
        let number = match next() % 8 {
            0 => next() as u32,
            1 => X32_BIT | (next() % 600) as u32,
            2 | 3 => conditional[(next() % conditional.len() as u64) as usize],
            _ => (next() % 600) as u32,
        };
        let architecture = if next() % 16 == 0 { 0x4000_0003 } else { ARCHITECTURE };
        let mut arguments = std::array::from_fn(|_| match next() % 3 {
            0 => next(),
            _ => interesting[(next() % interesting.len() as u64) as usize],
        });
        // Half of the calls with conditions meet those of some group, as far as they say what must be.
        let groups = rules.iter().find(|rule| rule.number == number).map(|rule| rule.verdict);
        if let (Some(Verdict::AllowIf { any_of, .. }), 0) = (groups, next() % 2) {
            for condition in any_of[(next() % any_of.len() as u64) as usize] {
                let argument = &mut arguments[usize::from(condition.argument)];
                match condition.comparison {
                    Comparison::Is(value) => *argument = value.into(),
                    Comparison::OneOf(values) => {
                        *argument = values[(next() % values.len() as u64) as usize].into();
                    }
                    Comparison::IsNot(_) => {}
                }
            }
        }
        Call { architecture, number, arguments }
    })
}

#[test]
fn compiled_filter_agrees_with_the_rule_list_for_a_million_calls() {
    let rules = rules(Audience::Everyone);
    let program = Program::compile(&rules, UNLISTED);
    for call in random_calls(1_000_000) {
        assert_eq!(program.evaluate(&call), Some(reference(&rules, &call)), "{call:?}");
    }
}

/// A kill is written to the log of the kernel, and the program decides how often.
#[test]
fn filter_actions_never_request_logging() {
    const QUIET: [u32; 3] = [RETURN_ALLOW, RETURN_ERRNO, RETURN_ASK];
    for (name, program) in crate::seccomp::programs() {
        let answers = program.0.iter().filter(|instruction| instruction.code == RETURN);
        for answer in answers.map(|instruction| instruction.operand & 0xffff_0000) {
            assert!(QUIET.contains(&answer), "{name} answers {answer:#x}");
        }
    }
}

#[test]
fn precompiled_filter_matches_the_current_policy() {
    let [(_, everyone), (_, runner), (_, guard), (_, metadata), (_, supervised)] = crate::seccomp::programs();
    assert_eq!(everyone.instructions(), crate::seccomp::policy(Audience::Everyone));
    assert_eq!(runner.instructions(), crate::seccomp::policy(Audience::Runner));
    assert_eq!(guard.instructions(), crate::seccomp::GUARD);
    assert_eq!(metadata.instructions(), crate::seccomp::METADATA);
    assert_eq!(supervised.instructions(), crate::seccomp::policy(Audience::Supervised));
}

#[test]
fn every_filter_instruction_is_reachable() {
    // An unreachable instruction would be a rule that does not hold.
    let program = Program::compile(&rules(Audience::Everyone), UNLISTED);
    let mut reached = vec![false; program.0.len()];
    for call in random_calls(1_000_000) {
        program.walk(&call, |index| reached[index] = true);
    }
    assert_eq!(reached.iter().position(|reached| !reached), None);
}

#[test]
fn terminal_input_is_refused_with_high_bits_set_too() {
    let program = Program::compile(&rules(Audience::Everyone), UNLISTED);
    let ioctl = u32::try_from(libc::SYS_ioctl).unwrap();
    for request in [0x5412, 0x541c, 0x1_0000_5412, 0xffff_ffff_0000_541c] {
        let answer = program.evaluate(&call(ioctl, [0, request, 0, 0, 0, 0]));
        assert_eq!(answer, Some(FilterAction::Errno(libc::ENOTTY as u16)), "{request:#x}");
    }
    assert_eq!(program.evaluate(&call(ioctl, [0, 0x5401, 0, 0, 0, 0])), Some(FilterAction::Allow));
}

#[test]
fn ioctl_that_reserves_space_or_changes_file_flags_is_denied() {
    const REFUSED: [u64; 10] = [
        0x4030_5828,
        0x4030_5829,
        0x4030_582a,
        0x4030_582b,
        0x4030_5839,
        0x4008_6602,
        0x401c_5820,
        0xc028_660f,
        0xc018_9436,
        0xc020_660b,
    ];
    // FICLONE, FIONREAD, FS_IOC_GETFLAGS
    const ALLOWED: [u64; 3] = [0x4004_9409, 0x541b, 0x8008_6601];
    requests_are_judged(&[Audience::Everyone, Audience::Runner, Audience::Supervised], &REFUSED, &ALLOWED);
}

/// Requests of `ioctl` that are refused, also with more bits than the kernel looks at, and others that aren't.
fn requests_are_judged(audiences: &[Audience], refused: &[u64], allowed: &[u64]) {
    let ioctl = u32::try_from(libc::SYS_ioctl).unwrap();
    for audience in audiences.iter().copied() {
        for program in
            [rules(audience), rules_under_guard(audience)].map(|rules| Program::compile(&rules, UNLISTED))
        {
            let answer = |request| program.evaluate(&call(ioctl, [3, request, 0, 0, 0, 0]));
            for request in refused.iter().flat_map(|request| [*request, *request | 1 << 32]) {
                assert_eq!(answer(request), Some(FilterAction::Errno(libc::ENOTTY as u16)), "{request:#x}");
            }
            for request in allowed.iter().copied() {
                assert_eq!(answer(request), Some(FilterAction::Allow), "{request:#x}");
            }
        }
    }
}

#[test]
fn only_listed_socket_ioctls_are_allowed() {
    // SIOCGIFBR, SIOCSIFBR, SIOCBRADDBR, SIOCGIFVLAN, SIOCSIFVLAN, SIOCADDRT, SIOCSIFFLAGS, SIOCGSKNS, SIOCGARP, SIOCSHWTSTAMP,
    // SIOCUNIXFILE, SIOCDEVPRIVATE, and two that are nothing
    const REFUSED: [u64; 14] = [
        0x8940, 0x8941, 0x89a0, 0x8982, 0x8983, 0x890b, 0x8914, 0x894c, 0x8954, 0x89b0, 0x89e0, 0x89f0,
        0x8900, 0x1_8940,
    ];
    // SIOCATMARK, SIOCGIFNAME, SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFHWADDR, SIOCGIFINDEX, FIONREAD, TIOCOUTQ
    const ALLOWED: [u64; 8] = [0x8905, 0x8910, 0x8912, 0x8913, 0x8927, 0x8933, 0x541b, 0x5411];
    requests_are_judged(&[Audience::Everyone, Audience::Runner], &REFUSED, &ALLOWED);
}

#[test]
fn socket_options_are_allowed_only_at_their_listed_level() {
    let program = Program::compile(&rules(Audience::Everyone), UNLISTED);
    let setsockopt = u32::try_from(libc::SYS_setsockopt).unwrap();
    let answer = |level: i32, option: u64| {
        program.evaluate(&call(setsockopt, [3, level as u64, option | 7 << 32, 0, 0, 0])).unwrap()
    };
    let refused = FilterAction::Errno(libc::ENOPROTOOPT as u16);
    // Filters, SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPING, SO_ZEROCOPY
    for option in [26, 50, 51, 52, 32, 33, 37, 65, 60] {
        assert_eq!(answer(libc::SOL_SOCKET, option), refused, "{option}");
    }
    for (level, option) in
        [(libc::IPPROTO_TCP, 14), (libc::IPPROTO_TCP, 38), (libc::IPPROTO_IPV6, 32), (libc::IPPROTO_IP, 35)]
    {
        assert_eq!(answer(level, option), refused, "{level} {option}");
    }
    // IPPROTO_RAW, SOL_TLS, SOL_ALG
    for level in [255, 282, 279] {
        assert_eq!(answer(level, 1), refused, "{level}");
    }
    for (level, option) in
        [(libc::SOL_SOCKET, 2), (libc::IPPROTO_TCP, 1), (libc::IPPROTO_IPV6, 26), (libc::IPPROTO_IP, 11)]
    {
        assert_eq!(answer(level, option), FilterAction::Allow, "{level} {option}");
    }
}

#[test]
fn guard_filter_notifies_for_buffer_sizes_linger_and_xattrs() {
    let guard = Program::compile(guard::RULES, Verdict::Allow);
    let setsockopt = u32::try_from(libc::SYS_setsockopt).unwrap();
    let answer =
        |level: i32, option: u64| guard.evaluate(&call(setsockopt, [3, level as u64, option, 0, 0, 0]));
    for option in [libc::SO_SNDBUF, libc::SO_RCVBUF, libc::SO_LINGER].map(|option| option as u64) {
        assert_eq!(answer(libc::SOL_SOCKET, option), Some(FilterAction::Ask));
        assert_eq!(answer(libc::IPPROTO_TCP, option), Some(FilterAction::Allow));
    }
    assert_eq!(answer(libc::SOL_SOCKET, 9), Some(FilterAction::Allow));
    for set in [libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr] {
        assert_eq!(guard.evaluate(&call(u32::try_from(set).unwrap(), [0; 6])), Some(FilterAction::Ask));
    }
}

#[test]
fn guard_filter_notifies_for_connect_and_denies_calls_reserved_for_pid_1() {
    let policy = Program::compile(&rules_under_guard(Audience::Everyone), UNLISTED);
    let guard = Program::compile(guard::RULES, Verdict::Allow);
    let number = |call: libc::c_long| u32::try_from(call).unwrap();
    let answers = |call: Call| (policy.evaluate(&call).unwrap(), guard.evaluate(&call).unwrap());
    let eperm = FilterAction::Errno(libc::EPERM as u16);
    assert_eq!(
        answers(call(number(libc::SYS_connect), [3, 0, 16, 0, 0, 0])),
        (FilterAction::Allow, FilterAction::Ask)
    );
    assert_eq!(answers(call(number(libc::SYS_pidfd_getfd), [0; 6])), (FilterAction::Allow, eperm));
    assert_eq!(answers(call(number(libc::SYS_kcmp), [0; 6])), (FilterAction::Allow, eperm));
    assert_eq!(answers(call(number(libc::SYS_read), [0; 6])), (FilterAction::Allow, FilterAction::Allow));
    let kinds = [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET];
    let unsupported = FilterAction::Errno(libc::EPROTONOSUPPORT as u16);
    for (kind, expected) in
        kinds.into_iter().zip([FilterAction::Allow, unsupported, unsupported, FilterAction::Allow])
    {
        for pair in [libc::SYS_socket, libc::SYS_socketpair] {
            let kind = (kind | libc::SOCK_CLOEXEC) as u64;
            let unix = call(number(pair), [libc::AF_UNIX as u64, kind, 0, 0, 0, 0]);
            assert_eq!(guard.evaluate(&unix), Some(expected));
        }
    }
    let netlink = |protocol: i32| {
        answers(call(number(libc::SYS_socket), [libc::AF_NETLINK as u64, 2, protocol as u64, 0, 0, 0]))
    };
    assert_eq!(netlink(libc::NETLINK_SOCK_DIAG), (FilterAction::Allow, unsupported));
    assert_eq!(netlink(libc::NETLINK_ROUTE), (FilterAction::Allow, FilterAction::Allow));
    let reserve = |mode: u64| answers(call(number(libc::SYS_fallocate), [3, mode, 0, 4096, 0, 0]));
    assert_eq!(
        (reserve(0), reserve(1)),
        ((FilterAction::Allow, FilterAction::Ask), (FilterAction::Allow, FilterAction::Ask))
    );
    assert_eq!(reserve(3), (FilterAction::Allow, FilterAction::Allow), "gives space back");
    assert_eq!(reserve(0x10).0, FilterAction::Errno(libc::EOPNOTSUPP as u16));
    let inet = call(number(libc::SYS_socket), [libc::AF_INET as u64, libc::SOCK_DGRAM as u64, 0, 0, 0, 0]);
    assert_eq!(guard.evaluate(&inet), Some(FilterAction::Allow));
}
