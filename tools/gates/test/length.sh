mkdir -p src/base
seq -f 'int x%g;' 1001 >src/base/long.c
seq -f 'int x%g;' 601 >src/base/longish.c
seq -f 'int x%g;' 600 >src/base/fine.c
