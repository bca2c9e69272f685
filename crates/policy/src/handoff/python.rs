//! Python modules at the top of a tree. If Python is started there, they shadow modules of the standard library, and programs
//! that are started by `python3 -m`.

use super::ChangeEntryKind;

/// Names in `sys.stdlib_module_names` of Python 3.8 to 3.15. All names with a single leading underscore count, too.
#[rustfmt::skip]
const OF_STANDARD_LIBRARY: [&str; 228] = [
    "__future__", "abc", "aifc", "annotationlib", "antigravity", "argparse", "array", "ast", "asynchat",
    "asyncio", "asyncore", "atexit", "audioop", "base64", "bdb", "binascii", "binhex", "bisect", "builtins",
    "bz2", "calendar", "cgi", "cgitb", "chunk", "cmath", "cmd", "code", "codecs", "codeop", "collections",
    "colorsys", "compileall", "compression", "concurrent", "configparser", "contextlib", "contextvars",
    "copy", "copyreg", "cprofile", "crypt", "csv", "ctypes", "curses", "dataclasses", "datetime", "dbm",
    "decimal", "difflib", "dis", "distutils", "doctest", "dummy_threading", "email", "encodings",
    "ensurepip", "enum", "errno", "faulthandler", "fcntl", "filecmp", "fileinput", "fnmatch", "formatter",
    "fractions", "ftplib", "functools", "gc", "genericpath", "getopt", "getpass", "gettext", "glob",
    "graphlib", "grp", "gzip", "hashlib", "heapq", "hmac", "html", "http", "idlelib", "imaplib", "imghdr",
    "imp", "importlib", "inspect", "io", "ipaddress", "itertools", "json", "keyword", "lib2to3",
    "linecache", "locale", "logging", "lzma", "macpath", "macurl2path", "mailbox", "mailcap", "marshal",
    "math", "mimetypes", "mmap", "modulefinder", "msilib", "msvcrt", "multiprocessing", "netrc", "nis",
    "nntplib", "nt", "ntpath", "nturl2path", "numbers", "opcode", "operator", "optparse", "os",
    "ossaudiodev", "parser", "pathlib", "pdb", "pickle", "pickletools", "pipes", "pkgutil", "platform",
    "plistlib", "poplib", "posix", "posixpath", "pprint", "profile", "profiling", "pstats", "pty", "pwd",
    "py_compile", "pyclbr", "pydoc", "pydoc_data", "pyexpat", "queue", "quopri", "random", "re", "readline",
    "reprlib", "resource", "rlcompleter", "runpy", "sched", "secrets", "select", "selectors", "shelve",
    "shlex", "shutil", "signal", "site", "smtpd", "smtplib", "sndhdr", "socket", "socketserver", "spwd",
    "sqlite3", "sre_compile", "sre_constants", "sre_parse", "ssl", "stat", "statistics", "string",
    "stringprep", "struct", "subprocess", "sunau", "symbol", "symtable", "sys", "sysconfig", "syslog",
    "tabnanny", "tarfile", "telnetlib", "tempfile", "termios", "textwrap", "this", "threading", "time",
    "timeit", "tkinter", "token", "tokenize", "tomllib", "trace", "traceback", "tracemalloc", "tty",
    "turtle", "turtledemo", "types", "typing", "unicodedata", "unittest", "urllib", "uu", "uuid", "venv",
    "warnings", "wave", "weakref", "webbrowser", "winreg", "winsound", "wsgiref", "xdrlib", "xml", "xmlrpc",
    "zipapp", "zipfile", "zipimport", "zlib", "zoneinfo",
];

/// Packages that are usually started by `python3 -m`, or that such programs import.
#[rustfmt::skip]
const OF_PROGRAMS: [&str; 86] = [
    "ansible", "autopep8", "babel", "bandit", "behave", "bikeshed", "black", "build", "bumpversion",
    "cibuildwheel", "codespell", "coverage", "cython", "django", "docutils", "fabric", "flake8", "flask",
    "flit", "fire", "gunicorn", "hatch", "hatchling", "hypercorn", "invoke", "ipykernel", "ipython",
    "isort", "jinja2", "jsonschema", "jupyter", "kernprof", "line_profiler", "locust", "maturin",
    "memory_profiler", "mkdocs", "mypy", "nbconvert", "nose", "nose2", "notebook", "nox", "numpy", "pdm",
    "pip", "pip_audit", "pipenv", "pipx", "piptools", "poetry", "pre_commit", "pyright", "pycodestyle",
    "pydocstyle", "pyflakes", "pygments", "pyinstaller", "pylint", "pytest", "pytype", "requests", "rich",
    "ruff", "scalene", "scrapy", "setuptools", "setuptools_scm", "slotscheck", "snakeviz", "sphinx",
    "streamlit", "tornado", "towncrier", "tox", "twine", "typer", "uv", "uvicorn", "vermin", "virtualenv",
    "viztracer", "vulture", "waitress", "wheel", "yapf",
];

/// Modules that the standard library, pip or a distribution's start-up file imports if they exist.
#[rustfmt::skip]
const OPTIONAL: [&str; 17] = [
    "apport_python_hook", "attr", "brotli", "brotlicffi", "certifi", "chardet", "charset_normalizer",
    "colorama", "cpickle", "keyring", "openssl", "org", "simplejson", "socks", "truststore",
    "urllib3_secure_extra", "zstandard",
];

const REASON: &str =
    "where Python is started in this folder, it runs in the place of the module of this name";

/// Returns the reason why a path requires an approval as a module that is new and shadows another one. The parts are folded.
pub(super) fn review(
    parts: &[&str],
    (before, after): (&Option<ChangeEntryKind>, &Option<ChangeEntryKind>),
) -> Option<&'static str> {
    if after.is_none() {
        return None;
    }
    let is_link = matches!(after, Some(ChangeEntryKind::Link { .. }));
    let name = match parts {
        // The link may lead to a package.
        [name] if is_link => name.strip_suffix(".py").unwrap_or(name),
        [name] => name.strip_suffix(".py").or_else(|| name.strip_suffix(".pyw"))?,
        [package, "__init__.py" | "__main__.py"] => package,
        _ => return None,
    };
    // Only a file was the module before: a directory is none by its name alone, and the old target of a link is unknown.
    if !is_link && matches!(before, Some(ChangeEntryKind::File { .. })) {
        return None;
    }
    // Internal parts of Python have such names, and each version adds some (`_colorize`, `_pyrepl`,
    // `_sysconfigdata__linux_x86_64-linux-gnu`).
    let is_private = name.starts_with('_') && !name.starts_with("__");
    let is_known =
        [&OF_STANDARD_LIBRARY[..], &OF_PROGRAMS, &OPTIONAL].into_iter().any(|all| all.contains(&name));
    (is_private || is_known).then_some(REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_module_was_shadowed_only_if_it_was_a_file() {
        let file = || Some(ChangeEntryKind::File { is_executable: false });
        let link = || Some(ChangeEntryKind::Link { target: "x".to_owned() });
        let asks = |parts: &[&str], before, after| review(parts, (&before, &after)).is_some();
        for parts in [&["csv.py"][..], &["csv", "__init__.py"]] {
            for before in [None, Some(ChangeEntryKind::Directory), Some(ChangeEntryKind::Other), link()] {
                assert!(asks(parts, before.clone(), file()), "{parts:?} {before:?}");
                assert!(!asks(parts, before, None), "it is removed");
            }
            assert!(!asks(parts, file(), file()), "the control");
        }
        // A file of this name is no module, but it may become a link to a package.
        assert!(!asks(&["csv"], None, file()));
        assert!(asks(&["csv"], file(), link()));
    }
}
