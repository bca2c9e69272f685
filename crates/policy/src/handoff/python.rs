//! Modules of Python at the top of a tree: where Python is started there, they run in the place of those of the standard library, and
//! of programs that are started by `python3 -m`.

use super::Entry;

/// The names in Python's `sys.stdlib_module_names`.
#[rustfmt::skip]
const OF_STANDARD_LIBRARY: [&str; 305] = [
    "__future__", "_abc", "_aix_support", "_ast", "_asyncio", "_bisect", "_blake2", "_bootsubprocess",
    "_bz2", "_codecs", "_codecs_cn", "_codecs_hk", "_codecs_iso2022", "_codecs_jp", "_codecs_kr",
    "_codecs_tw", "_collections", "_collections_abc", "_compat_pickle", "_compression", "_contextvars",
    "_crypt", "_csv", "_ctypes", "_curses", "_curses_panel", "_datetime", "_dbm", "_decimal",
    "_elementtree", "_frozen_importlib", "_frozen_importlib_external", "_functools", "_gdbm", "_hashlib",
    "_heapq", "_imp", "_io", "_json", "_locale", "_lsprof", "_lzma", "_markupbase", "_md5", "_msi",
    "_multibytecodec", "_multiprocessing", "_opcode", "_operator", "_osx_support", "_overlapped", "_pickle",
    "_posixshmem", "_posixsubprocess", "_py_abc", "_pydecimal", "_pyio", "_queue", "_random", "_scproxy",
    "_sha1", "_sha256", "_sha3", "_sha512", "_signal", "_sitebuiltins", "_socket", "_sqlite3", "_sre",
    "_ssl", "_stat", "_statistics", "_string", "_strptime", "_struct", "_symtable", "_thread",
    "_threading_local", "_tkinter", "_tokenize", "_tracemalloc", "_typing", "_uuid", "_warnings",
    "_weakref", "_weakrefset", "_winapi", "_zoneinfo", "abc", "aifc", "antigravity", "argparse", "array",
    "ast", "asynchat", "asyncio", "asyncore", "atexit", "audioop", "base64", "bdb", "binascii", "bisect",
    "builtins", "bz2", "calendar", "cgi", "cgitb", "chunk", "cmath", "cmd", "code", "codecs", "codeop",
    "collections", "colorsys", "compileall", "concurrent", "configparser", "contextlib", "contextvars",
    "copy", "copyreg", "cprofile", "crypt", "csv", "ctypes", "curses", "dataclasses", "datetime", "dbm",
    "decimal", "difflib", "dis", "distutils", "doctest", "email", "encodings", "ensurepip", "enum", "errno",
    "faulthandler", "fcntl", "filecmp", "fileinput", "fnmatch", "fractions", "ftplib", "functools", "gc",
    "genericpath", "getopt", "getpass", "gettext", "glob", "graphlib", "grp", "gzip", "hashlib", "heapq",
    "hmac", "html", "http", "idlelib", "imaplib", "imghdr", "imp", "importlib", "inspect", "io",
    "ipaddress", "itertools", "json", "keyword", "lib2to3", "linecache", "locale", "logging", "lzma",
    "mailbox", "mailcap", "marshal", "math", "mimetypes", "mmap", "modulefinder", "msilib", "msvcrt",
    "multiprocessing", "netrc", "nis", "nntplib", "nt", "ntpath", "nturl2path", "numbers", "opcode",
    "operator", "optparse", "os", "ossaudiodev", "pathlib", "pdb", "pickle", "pickletools", "pipes",
    "pkgutil", "platform", "plistlib", "poplib", "posix", "posixpath", "pprint", "profile", "pstats", "pty",
    "pwd", "py_compile", "pyclbr", "pydoc", "pydoc_data", "pyexpat", "queue", "quopri", "random", "re",
    "readline", "reprlib", "resource", "rlcompleter", "runpy", "sched", "secrets", "select", "selectors",
    "shelve", "shlex", "shutil", "signal", "site", "smtpd", "smtplib", "sndhdr", "socket", "socketserver",
    "spwd", "sqlite3", "sre_compile", "sre_constants", "sre_parse", "ssl", "stat", "statistics", "string",
    "stringprep", "struct", "subprocess", "sunau", "symtable", "sys", "sysconfig", "syslog", "tabnanny",
    "tarfile", "telnetlib", "tempfile", "termios", "textwrap", "this", "threading", "time", "timeit",
    "tkinter", "token", "tokenize", "tomllib", "trace", "traceback", "tracemalloc", "tty", "turtle",
    "turtledemo", "types", "typing", "unicodedata", "unittest", "urllib", "uu", "uuid", "venv", "warnings",
    "wave", "weakref", "webbrowser", "winreg", "winsound", "wsgiref", "xdrlib", "xml", "xmlrpc", "zipapp",
    "zipfile", "zipimport", "zlib", "zoneinfo",
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

const REASON: &str =
    "where Python is started in this folder, it runs in the place of the module of this name";

/// Why a path needs a yes as a module, if it does: it wasn't one before, and takes the place of another. The parts are folded.
pub(super) fn review(
    parts: &[&str],
    (before, after): (&Option<Entry>, &Option<Entry>),
) -> Option<&'static str> {
    if after.is_none() {
        return None;
    }
    let is_link = matches!(after, Some(Entry::Link { .. }));
    let name = match parts {
        // The link may lead to a package.
        [name] if is_link => name.strip_suffix(".py").unwrap_or(name),
        [name] => name.strip_suffix(".py").or_else(|| name.strip_suffix(".pyw"))?,
        [package, "__init__.py" | "__main__.py"] => package,
        _ => return None,
    };
    // Only a file was the module already: a directory is none by its name alone, and where a link has led isn't known.
    if !is_link && matches!(before, Some(Entry::File { .. })) {
        return None;
    }
    let is_known = OF_STANDARD_LIBRARY.contains(&name) || OF_PROGRAMS.contains(&name);
    is_known.then_some(REASON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_was_the_module_before() {
        let file = || Some(Entry::File { is_executable: false });
        let link = || Some(Entry::Link { target: "x".to_owned() });
        let asks = |parts: &[&str], before, after| review(parts, (&before, &after)).is_some();
        for parts in [&["csv.py"][..], &["csv", "__init__.py"]] {
            for before in [None, Some(Entry::Directory), Some(Entry::Other), link()] {
                assert!(asks(parts, before.clone(), file()), "{parts:?} {before:?}");
                assert!(!asks(parts, before, None), "it is removed");
            }
            assert!(!asks(parts, file(), file()), "the control");
        }
        // A file of this name is no module, and may become a link to a package.
        assert!(!asks(&["csv"], None, file()));
        assert!(asks(&["csv"], file(), link()));
    }
}
