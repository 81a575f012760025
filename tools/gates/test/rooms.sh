for i in $(seq 40); do echo > src/core/upper/more$i.c; done
mkdir -p src/base src/store src/ray
for i in $(seq 65); do echo > src/base/more$i.c; done
for i in $(seq 41); do echo > src/store/more$i.c; done
for i in $(seq 40); do echo > src/ray/more$i.c; done
