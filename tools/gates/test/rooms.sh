for i in $(seq 40); do echo > src/core/upper/more$i.c; done
mkdir -p src/base/doc src/store src/ray
echo > src/base/doc/doc.c
for i in $(seq 41); do echo > src/base/more$i.c; done
for i in $(seq 41); do echo > src/store/more$i.c; done
for i in $(seq 40); do echo > src/ray/more$i.c; done
# A circle that is listed, one that has a module more than its line, one that is new (b and a), one that is gone.
printf '# circles\nupper/more1 upper/more2\nupper/more3 upper/more4\nupper/more7 upper/more8\n' > src/core/CIRCLES
in_turn() {
  for pair in "$@"; do
    echo "#include \"core/upper/more${pair#*:}.h\"" >> "src/core/upper/more${pair%:*}.c"
  done
}
in_turn 1:2 2:1 3:4 4:5 5:3
mkdir -p docs
printf 'The rooms:\n\n    core   upper · other      what it is\n' > docs/ARCHITECTURE.md
