for i in $(seq 40); do echo > src/core/upper/more$i.c; done
