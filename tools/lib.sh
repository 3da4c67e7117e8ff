# shellcheck shell=bash
# Shared by the scripts of this folder and by .ci/run; sourced, not run.

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
# What would lead Python, pip or Spark to another installation than ours.
unset PYTHONHOME PYTHONPATH PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIRE_VIRTUALENV SPARK_HOME VIRTUAL_ENV

# Print a Python >= 3.10, best one first: the environment's own, then those that Spark is tested on. HUDI_PY_PYTHON
# names another one. A first round asks for one that can make a complete environment.
find_python() {
  local need candidate
  for need in 'import venv, ensurepip' 'pass'; do
    for candidate in "${HUDI_PY_PYTHON:-$ROOT/$1/bin/python}" python3.11 python3.12 python3.10 python3.13 python3 python; do
      if "$candidate" -c "import sys; sys.exit(sys.version_info < (3, 10)); $need" >/dev/null 2>&1 &&
        "$candidate" -c "$need" >/dev/null 2>&1; then
        printf '%s\n' "$candidate"
        return
      fi
    done
  done
  echo "error: no Python 3.10 or newer found; install one (3.11 is best), or name it: HUDI_PY_PYTHON=/path/to/python3" >&2
  return 1
}

# bootstrap FOLDER EXTRAS [REQUIREMENT...]: make the environment FOLDER of this checkout and set PYTHON to its Python.
bootstrap() {
  local python
  python=$(find_python "$1") || return 1
  "$python" "$ROOT/tools/bootstrap.py" "$@" || return
  # shellcheck disable=SC2034  # for the script that sources this
  PYTHON=$ROOT/$1/bin/python
}

# The two environments. The requirement is part of each: every script must ask for the same one.
bootstrap_spark35() { bootstrap .venv "$1" 'pyspark==3.5.*'; }
bootstrap_spark40() { bootstrap .venv-spark4 "$1" 'pyspark==4.0.*'; }
# And one without Spark, for the tests that need no more.
bootstrap_fast() { bootstrap .venv-fast unit; }

# A browser for the tests of the page, where the machine has none and its packages can be installed without a
# question. Those tests are skipped with their reason where this fails.
install_browser() {
  local name root=()
  for name in chromium chromium-browser google-chrome chrome; do
    command -v "$name" >/dev/null && return
  done
  [ "$(id -u)" -eq 0 ] || root=(sudo -n)
  if command -v apt-get >/dev/null && { [ ${#root[@]} -eq 0 ] || sudo -n true 2>/dev/null; }; then
    echo "== install a browser for the tests of the page"
    # a package index that does not answer must not hold up all other tests
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive timeout 300 sh -c \
      'apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium' >/dev/null 2>&1 && return
  fi
  echo "no browser could be installed: the tests of the page are skipped; install Chromium to run them"
}
