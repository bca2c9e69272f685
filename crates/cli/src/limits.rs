//! The arguments that say what a sandbox may use, and which layers it must have; the same for every command that makes
//! one.

use belljar_contract::isolation::RequiredLayers;
use belljar_sandbox::limits::{Bytes, LEAST_MEMORY, LEAST_NATIVE_SCRATCH, Limit, Limits};

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArguments {
    #[command(flatten)]
    amounts: AmountArguments,
    /// Fail unless this layer of the isolation is in force, such as landlock or memory_limit
    #[arg(long, value_name = "LAYER", value_delimiter = ',')]
    require: Vec<String>,
}

// The limits alone, as amounts. No doc comment: clap would make it the description of the command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct AmountArguments {
    /// Memory limit, including files in memory, such as 512m or 2g; when it is reached, the sandbox is killed [default: 4g]
    #[arg(long, value_name = "SIZE|none", value_parser = parse_memory)]
    memory: Option<AmountLimit>,
    /// Processors, such as 1.5 [default: none]
    #[arg(long, value_name = "NUMBER|none", value_parser = parse_processors)]
    cpus: Option<CpuLimit>,
    /// Processes and threads [default: 1024]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pids: Option<u64>,
    /// Open files of one process [default: 65536]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(16..))]
    open_files: Option<u64>,
    /// Maximum disk usage [default: 8g, none for a --workspace that is changed in place]
    #[arg(long, value_name = "SIZE|none", value_parser = parse_most)]
    disk: Option<AmountLimit>,
    /// Maximum total size of /tmp, the home directory and an empty workspace, in memory [default: 1g]
    #[arg(long, value_name = "SIZE", value_parser = parse_scratch)]
    scratch: Option<Bytes>,
    /// Pseudo-terminals [default: 64]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1024))]
    ptys: Option<u64>,
    /// Maximum number of seccomp filters that programs can install, each with up to 256 KiB of kernel memory [default: 64]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(0..=4096))]
    seccomp_filters: Option<u64>,
}

/// An amount, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AmountLimit(Option<u64>);

/// Thousandths of a processor, or no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuLimit(Option<u32>);

// === impl LimitArguments ===

impl LimitArguments {
    /// The limits, and those of the configuration where none was said. A directory that is changed in place is its owner's to limit.
    pub(crate) fn limits(&self, usual: Limits, is_changed_in_place: bool) -> Limits {
        self.over(Limits { disk_bytes: usual.disk_bytes.filter(|_| !is_changed_in_place), ..usual })
    }

    /// Returns the given limits, with the defaults for those that are not given.
    pub(crate) fn over(&self, usual: Limits) -> Limits {
        self.amounts.over(usual)
    }

    /// Returns the isolation layers named by `--require`, without which no sandbox is created.
    pub(crate) fn required(&self) -> Result<RequiredLayers, crate::error::CliError> {
        RequiredLayers::parse(self.require.clone())
            .map_err(|error| crate::error::CliError::usage(format!("--require: {error}")))
    }

    /// Returns the layers named by `--require`, and the layers that enforce the limits set on the command line.
    pub(crate) fn required_with_limits(&self) -> Result<RequiredLayers, crate::error::CliError> {
        let set = self.amounts.layers().into_iter().map(str::to_owned);
        let named = self.required()?;
        let all = named.names().map(str::to_owned).chain(set);
        RequiredLayers::parse(all).map_err(|error| crate::error::CliError::usage(error.to_string()))
    }
}

// === impl AmountArguments ===

impl AmountArguments {
    /// Returns the given limits, with the defaults for those that are not given.
    pub(crate) fn over(&self, usual: Limits) -> Limits {
        Limits {
            memory_bytes: self.memory.map_or(usual.memory_bytes, |most| most.0),
            processes: self.pids.unwrap_or(usual.processes),
            millicpus: self.cpus.map_or(usual.millicpus, |processors| processors.0),
            open_files: self.open_files.unwrap_or(usual.open_files),
            disk_bytes: self.disk.map_or(usual.disk_bytes, |most| most.0),
            scratch_bytes: self.scratch.map_or(usual.scratch_bytes, |scratch| scratch.0),
            terminals: self.ptys.unwrap_or(usual.terminals),
            filters: self.seccomp_filters.unwrap_or(usual.filters),
        }
    }

    /// Returns the layers that enforce the given limits.
    fn layers(&self) -> Vec<&'static str> {
        let limits = [
            (self.memory.is_some_and(|most| most.0.is_some()), "memory_limit"),
            (self.cpus.is_some_and(|most| most.0.is_some()), "cpu_limit"),
            (self.pids.is_some(), "process_limit"),
            (self.open_files.is_some(), "resource_limits"),
            (self.disk.is_some_and(|most| most.0.is_some()), "disk_limit"),
            (self.scratch.is_some(), "scratch_limit"),
            (self.ptys.is_some() || self.seccomp_filters.is_some(), "kernel_tables"),
        ];
        let set = limits.into_iter().filter(|(is_set, _)| *is_set).map(|(_, layer)| layer);
        set.collect()
    }

    /// Returns the given limits as a configuration would write them, by option.
    pub(crate) fn written(&self) -> Vec<(&'static str, String)> {
        let most = |most: Option<u64>| most.map_or_else(|| NO_LIMIT.to_owned(), size);
        let processors = |processors: CpuLimit| {
            let number = |millicpus| (f64::from(millicpus) / 1_000.0).to_string();
            processors.0.map_or_else(|| NO_LIMIT.to_owned(), number)
        };
        let count = |count: Option<u64>| count.map(|count| count.to_string());
        let all = [
            ("--memory", self.memory.map(|memory| most(memory.0))),
            ("--cpus", self.cpus.map(processors)),
            ("--pids", count(self.pids)),
            ("--open-files", count(self.open_files)),
            ("--disk", self.disk.map(|disk| most(disk.0))),
            ("--scratch", self.scratch.map(|Bytes(bytes)| size(bytes))),
            ("--ptys", count(self.ptys)),
            ("--seccomp-filters", count(self.seccomp_filters)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// A size, as a configuration would write it.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let fits = units.into_iter().find(|(shift, _)| bytes.trailing_zeros() >= *shift);
    fits.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

/// Reports the limit that ended a sandbox, and the option that raises it.
pub(crate) fn tell(limit: Limit) {
    let option = match limit {
        Limit::Memory => "--memory",
        Limit::Disk => "--disk",
    };
    crate::output::errln!("belljar: the sandbox was killed: {limit}; {option} raises the limit");
}

const NO_LIMIT: &str = "none";

fn parse_most(text: &str) -> Result<AmountLimit, String> {
    match text {
        NO_LIMIT => Ok(AmountLimit(None)),
        size => size.parse().map(|Bytes(bytes)| AmountLimit(Some(bytes))).map_err(|error| error.to_string()),
    }
}

/// Parses a memory limit. Refuses less than a sandbox needs to start.
fn parse_memory(text: &str) -> Result<AmountLimit, String> {
    match parse_most(text)? {
        AmountLimit(Some(bytes)) => at_least(text, bytes, LEAST_MEMORY).map(|bytes| AmountLimit(Some(bytes))),
        no_limit => Ok(no_limit),
    }
}

fn parse_scratch(text: &str) -> Result<Bytes, String> {
    let Bytes(bytes) = text.parse::<Bytes>().map_err(|error| error.to_string())?;
    at_least(text, bytes, LEAST_NATIVE_SCRATCH).map(Bytes)
}

fn at_least(text: &str, bytes: u64, least: u64) -> Result<u64, String> {
    match bytes >= least {
        true => Ok(bytes),
        false => Err(format!(
            "no sandbox can be built with {text} ({bytes} bytes); the least that works is {}m",
            least >> 20
        )),
    }
}

fn parse_processors(text: &str) -> Result<CpuLimit, String> {
    let expected = || format!("expected a number of processors between 0.01 and 4096, or none, not {text:?}");
    if text == NO_LIMIT {
        return Ok(CpuLimit(None));
    }
    let number: f64 = text.parse().map_err(|_| expected())?;
    match (0.01..=4096.0).contains(&number) {
        true => Ok(CpuLimit(Some((number * 1000.0).round() as u32))),
        false => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amount_none_means_no_limit() {
        assert_eq!(parse_most("none"), Ok(AmountLimit(None)));
        assert_eq!(parse_most("1.5g"), Ok(AmountLimit(Some(3 << 29))));
        assert!(parse_most("0").is_err() && parse_most("").is_err() && parse_most("unlimited").is_err());
    }

    #[test]
    fn limit_too_small_for_a_sandbox_is_refused_with_the_minimum() {
        assert!(parse_memory("5").unwrap_err().contains("the least that works is 6m"));
        assert_eq!(parse_memory("6m"), Ok(AmountLimit(Some(6 << 20))));
        assert_eq!(parse_memory("none"), Ok(AmountLimit(None)));
        assert!(parse_scratch("512k").unwrap_err().contains("the least that works is 1m"));
        assert!(parse_scratch("1m").is_ok());
    }

    #[test]
    fn cpu_limit_is_parsed_and_bounded() {
        assert_eq!(parse_processors("1.5"), Ok(CpuLimit(Some(1500))));
        assert_eq!(parse_processors("none"), Ok(CpuLimit(None)));
        for wrong in ["0", "-1", "NaN", "inf", "1e9", "two"] {
            assert!(parse_processors(wrong).is_err(), "{wrong}");
        }
    }
}
