//! The commands of the probe.

mod acts;
mod batch;
mod consume;
mod dump;
mod exhaust;
mod fill;
mod flood;
#[expect(unsafe_code, reason = "the calls that must be refused are calls that no safe library makes")]
mod kernel;
mod leave;
mod linger;
mod machine;
mod namespaces;
mod places;
mod posture;
mod stop;
mod tables;
mod wait;

/// Runs the command that the first argument names. Errors are texts for people.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        ["run", file] => batch::run(file),
        ["free", file] => namespaces::enter().and_then(|()| batch::run(file)),
        ["hold", file] => batch::hold(file),
        ["identity"] => posture::print_identity(),
        ["posture"] => posture::print(),
        ["dump", roots @ ..] => dump::print(roots),
        ["consume", "held", mebibytes] => consume::hold(mebibytes),
        ["consume", kind, mebibytes] => consume::take(kind, mebibytes),
        ["fill", kind, folder, mebibytes] => fill::take(kind, folder, mebibytes),
        ["flood", kind, bytes] => flood::write(kind, bytes),
        ["take", kind, most, folder] => tables::take(kind, most, folder, None),
        ["take", kind, most, folder, seconds] => tables::take(kind, most, folder, Some(seconds)),
        ["wait", kind, path] => wait::forever(kind, path),
        ["stop"] => stop::everything(),
        ["linger", folder] => linger::run(folder),
        ["leave", mark] => leave::everyone(mark),
        [leave::STAY, ..] => leave::stay(arguments),
        _ => Err(format!("don't know {arguments:?}")),
    }
}
