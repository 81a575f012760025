/* A project has jobs; a lieutenant is somebody else. */
int tenant_count(void);
/* Kubernetes says tenant: their word. */
/* Of the last one, its name. */
int y; /* The name of the last one. */
