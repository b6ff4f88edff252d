#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints SQL files as one C array of strings: embed.sh NAME FILE...
set -eu
name=$1
shift
printf '/* Made by embed.sh from %d SQL files. */\n' "$#"
printf 'const char *const %s[] = {\n' "$name"
for file; do
	sed -e 's/[\\"]/\\&/g' -e 's/.*/\t"&\\n"/' "$file"
	printf '\t,\n'
done
printf '\t(void *)0};\n'
