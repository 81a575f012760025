mkdir -p build/src/argusd src/argus/job src/base
printf '[]' >build/compile_commands.json
cat >build/src/argusd/openapi.json <<'EOF'
{"paths": {"/v1/jobs": {"get": {"parameters": [{"name": "limit", "in": "query"}, {"name": "job", "in": "path"}]}}},
 "components": {"schemas": {"Job": {"type": "object", "properties": {"id": {"type": "string"}, "usage": {"type":
 "object", "properties": {"gpus_held": {"type": "integer"}}}}}}}}
EOF
cat >src/base/json.h <<'EOF'
const char *json_get_str(const json_t *object, const char *key, const char *dflt);
EOF
cat >src/argus/job/page.c <<'EOF'
/* json_get_str(o, "of_a_comment", "") */
static void page_text(struct cli *cli, const char *title, const json_t *o, const char *key)
{
    page_line(cli, title, json_get_str(o, key, ""));
}

static const json_t *member_at(const json_t *object, const char *path);

void page(struct cli *cli, const json_t *o)
{
    page_text(cli, "a title, with (brackets", o, "id");
    page_text(cli, "renamed", o, "identity");
    page_text(cli, json_get_str(o, "title", ""), o, "id");
    (void)json_get_str(json_object_get(o, "usages"), "gpus_held", "");
    (void)member_at(o, "usage.gpus");
    (void)json_pack("{s:s,s:{s:[i,n],s:o}}", "id", "a value", "usage", "limit", 1, "gpus_hold", o);
    url_query(o, "job", "a parameter of the path is no member");
}
void url_query(struct buf *path, const char *key, const char *value);
EOF
