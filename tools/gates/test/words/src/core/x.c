/* A project has jobs; a lieutenant is somebody else. */
int tenant_count(void);
/* Kubernetes says tenant: their word. */
