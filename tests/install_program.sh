#!/bin/sh
# Installs a program that only the system has, with apt-get, where that works: as root on Debian and its relatives. Without
# the program, its tests are skipped, and say how to install it.
#
# Usage: install_program.sh PROGRAM PACKAGE
set -eu
if command -v "$1" >/dev/null 2>&1 || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	exit 0
fi
echo "apt-get install -y $2"
export DEBIAN_FRONTEND=noninteractive
{ apt-get update && apt-get install -y --no-install-recommends "$2"; } >/dev/null 2>&1 ||
	echo "$2 could not be installed" >&2
