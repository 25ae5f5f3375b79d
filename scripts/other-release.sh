# shellcheck shell=sh
# Packages of another release of this system, by lists of their own: nothing of the system changes, and none of this
# needs root. Read by scripts that fetch such packages; needs apt.

# "debian", "ubuntu", or nothing.
system_family() {
    # shellcheck source=/dev/null
    . /etc/os-release
    case " $ID ${ID_LIKE:-} " in
    *" ubuntu "*) echo ubuntu ;;
    *" debian "*) echo debian ;;
    esac
}

# The repository from which this system's own apt takes the system.
system_repository() {
    # shellcheck source=/dev/null
    . /etc/os-release
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' "Created-By: Packages" "Component: main" |
        awk -v names="${UBUNTU_CODENAME:-} ${VERSION_CODENAME:-} unstable sid testing devel" '
            BEGIN { split(names, list, " "); for (i in list) wanted[list[i]] = 1 }
            $1 in wanted { print $2; exit }'
}

# write_sources FOLDER FAMILY SUITE...: what `apt_apart FOLDER` is to know. Fails if apt has no repository of the system.
# $mirror, $keyring_folder and $components are taken where they are set.
write_sources() {
    apart=$1 keyring=$2
    shift 2
    mirror=${mirror:-$(system_repository)}
    [ -n "$mirror" ] || return 1
    signed=""
    for keys in "${keyring_folder:-/usr/share/keyrings}/$keyring-archive-keyring".*; do
        [ -e "$keys" ] && signed="[signed-by=$keys]"
    done
    mkdir -p "$apart/lists/partial" "$apart/archives/partial"
    for suite in "$@"; do
        echo "deb $signed $mirror $suite ${components:-main}"
        echo "deb-src $signed $mirror $suite ${components:-main}"
    done >"$apart/sources.list"
    : >"$apart/status"
}

# apt_apart FOLDER COMMAND ARGUMENT...: runs a command of apt with these lists alone.
apt_apart() {
    apart=$1 command=$2
    shift 2
    "$command" -q -o "Dir::Etc::SourceList=$apart/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o "Dir::State=$apart" -o "Dir::State::Status=$apart/status" -o "Dir::Cache=$apart" \
        -o APT::Sandbox::User=root -o Debug::NoLocking=true "$@"
}
