mkdir -p src/base tests/golden build-x
printf 'int x;\n' >src/base/x.c
printf '\177ELF\0\0' >src/base/tool
printf '{}' >openapi.json
printf '# DO NOT EDIT\n' >Makefile
printf 'x' >build-x/notes
head -c 600000 /dev/zero | tr '\0' 'a' >large.txt
printf 'SQLite\0' >tests/golden/v1.db
