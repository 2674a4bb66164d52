# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Sourced by build.sh and run.sh: the cache directory, locks, fetching with apt.
cache=${IBSRIG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/qemu-ibs}

die() { echo "$(basename "$0"): $*" >&2; exit 125; }

# locked NAME COMMAND...: one at a time for all users of the cache.
locked() {
    local name=$1
    shift
    ( flock 9; "$@" 9>&- ) 9>"$cache/.lock-$name"
}

# private_apt SUITE TYPE: print the apt options of a private configuration for
# a suite (TYPE deb or deb-src) that the caller's apt may not know, made from
# the sites the caller's apt uses.  Its lists are downloaded once.
private_apt() {
    local suite=$1 type=$2 d=$cache/apt/$1-$2 s site line
    local o="${IBSRIG_APT_OPTS:-}
             -o Dir::Etc::sourcelist=$d/s.list -o Dir::Etc::sourceparts=/dev/null
             -o Dir::State::lists=$d/lists -o Dir::Cache=$d/cache
             -o APT::Sandbox::User=root -o Acquire::Languages=none"
    if [ ! -e "$d/ok" ]; then
        rm -rf "$d"
        mkdir -p "$d/lists/partial" "$d/cache/archives/partial"
        apt-get ${IBSRIG_APT_OPTS:-} indextargets --format '$(SITE)' \
            'Created-By: Packages' | sort -u > "$d/sites"
        [ -s "$d/sites" ] || die "apt has no package lists; run apt-get update"
        # not every site has every suite: keep the lines that work
        while read -r site; do
            for s in "$suite" "$suite-updates" "$suite-security"; do
                line="$type $site $s main"
                echo "$line" > "$d/s.list"
                if apt-get $o update > "$d/update.log" 2>&1 < /dev/null &&
                   ! grep -qE '^(E:|W:|Err)' "$d/update.log"; then
                    echo "$line" >> "$d/good"
                fi
            done
        done < "$d/sites"
        [ -s "$d/good" ] || return 1
        cp "$d/good" "$d/s.list"
        apt-get $o update > "$d/update.log" 2>&1 || return 1
        touch "$d/ok"
    fi
    echo $o
}

# try_apt SUITE TYPE FUNCTION ARG...: call FUNCTION with $opts set to apt
# options until it succeeds: the caller's apt, SUITE's private lists, the same
# lists downloaded anew (a package they name may be gone from the mirror).
try_apt() {
    local suite=$1 type=$2 try opts
    shift 2
    for try in caller private fresh; do
        case $try in
        caller) opts="${IBSRIG_APT_OPTS:-} -o APT::Sandbox::User=root";;
        private) opts=$(private_apt "$suite" "$type") || continue;;
        fresh) rm -f "$cache/apt/$suite-$type/ok"
               opts=$(private_apt "$suite" "$type") || continue;;
        esac
        if "$@"; then
            return 0
        fi
    done
    return 1
}

get_deb() {             # REGEX DIR
    local name
    name=$(apt-cache $opts pkgnames 2>/dev/null | grep -xE "$1" | sort -V | tail -1) || return 1
    echo "fetching $name" >&2
    (cd "$2" && apt-get $opts download "$name" > apt.log 2>&1) &&
        dpkg-deb -x "$2"/*.deb "$2/root"
}

get_source() {          # PACKAGE VERSION-REGEX DIR
    local v
    v=$(apt-cache $opts showsrc --only-source "$1" 2>/dev/null |
        sed -n 's/^Version: //p' | grep -E "$2" | sort -V | tail -1) || return 1
    echo "fetching source $1 $v" >&2
    (cd "$3" && apt-get $opts source "$1=$v" > apt.log 2>&1)
}

apt_failed() {          # DIR WHAT
    sed 's#[a-z]*://[^ ]*##' "$1/apt.log" 2>/dev/null | tail -5 >&2
    die "cannot fetch $2"
}

# fetch_deb PACKAGE-REGEX SUITE DIR: unpack the newest matching package of the
# first configuration that has one to DIR/root.
fetch_deb() {
    rm -rf "$3" && mkdir -p "$3"
    locked apt try_apt "$2" deb get_deb "$1" "$3" ||
        apt_failed "$3" "a package matching $1 (suite $2)"
}

# fetch_source PACKAGE VERSION-REGEX SUITE DIR: unpack a source package in DIR.
fetch_source() {
    locked apt try_apt "$3" deb-src get_source "$1" "$2" "$4" ||
        apt_failed "$4" "the source of $1, version $2 (suite $3)"
}
