#!/bin/sh
# Whether this clang can link a fuzz program with its sanitizers.
#
#	possible.sh CLANG FOLDER
clang=$1 folder=$2
mkdir -p "$folder" || exit 1
printf 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n);\nint LLVMFuzzerTestOneInput(const char *d, unsigned long n)\n{\n\treturn d == 0 && n > 0;\n}\n' >"$folder/possible.c"
"$clang" -fsanitize=fuzzer,address,undefined "$folder/possible.c" -o "$folder/possible" 2>/dev/null
