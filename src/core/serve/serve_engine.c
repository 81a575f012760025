/* SPDX-License-Identifier: Apache-2.0 */
/* serve_engine.c - see serve_engine.h.
 *
 * What Ray Serve's module of 2.60.0 refuses by itself was read in it: an executor other than "ray"
 * on GPUs (vllm_models.py), disable_log_stats beside its metrics (llm_config.py). */
#include "core/serve/serve_engine.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"

/* ENGINE_ANY: the engine takes several kinds, or a list. */
enum engine_kind { ENGINE_INT, ENGINE_REAL, ENGINE_BOOL, ENGINE_TEXT, ENGINE_OBJECT, ENGINE_ANY };
/* Words of the catalogue. */
static const char *const engine_kind_words[] = {
    [ENGINE_INT] = "a whole number", [ENGINE_REAL] = "a number",    [ENGINE_BOOL] = "true or false",
    [ENGINE_TEXT] = "a text",        [ENGINE_OBJECT] = "an object",
};

struct engine_arg {
    const char *name;
    enum engine_kind kind;
};

static const struct engine_arg vllm_args[] = {
    {"additional_config", ENGINE_OBJECT},
    {"all2all_backend", ENGINE_TEXT},
    {"allowed_local_media_path", ENGINE_TEXT},
    {"allowed_media_domains", ENGINE_ANY},
    {"async_scheduling", ENGINE_BOOL},
    {"attention_backend", ENGINE_TEXT},
    {"attention_config", ENGINE_OBJECT},
    {"block_size", ENGINE_INT},
    {"calculate_kv_scales", ENGINE_BOOL},
    {"chat_template", ENGINE_TEXT},
    {"chat_template_content_format", ENGINE_TEXT},
    {"code_revision", ENGINE_TEXT},
    {"collect_detailed_traces", ENGINE_ANY},
    {"compilation_config", ENGINE_ANY},
    {"config_format", ENGINE_TEXT},
    {"convert", ENGINE_TEXT},
    {"cpu_offload_gb", ENGINE_REAL},
    {"cudagraph_capture_sizes", ENGINE_ANY},
    {"default_chat_template_kwargs", ENGINE_OBJECT},
    {"default_mm_loras", ENGINE_OBJECT},
    {"disable_cascade_attn", ENGINE_BOOL},
    {"disable_chunked_mm_input", ENGINE_BOOL},
    {"disable_custom_all_reduce", ENGINE_BOOL},
    {"disable_hybrid_kv_cache_manager", ENGINE_BOOL},
    {"disable_log_requests", ENGINE_BOOL},
    {"disable_log_stats", ENGINE_BOOL},
    {"disable_mm_preprocessor_cache", ENGINE_BOOL},
    {"disable_sliding_window", ENGINE_BOOL},
    {"distributed_executor_backend", ENGINE_TEXT},
    {"download_dir", ENGINE_TEXT},
    {"dtype", ENGINE_TEXT},
    {"enable_auto_tool_choice", ENGINE_BOOL},
    {"enable_chunked_prefill", ENGINE_BOOL},
    {"enable_eplb", ENGINE_BOOL},
    {"enable_expert_parallel", ENGINE_BOOL},
    {"enable_force_include_usage", ENGINE_BOOL},
    {"enable_log_outputs", ENGINE_BOOL},
    {"enable_log_requests", ENGINE_BOOL},
    {"enable_lora", ENGINE_BOOL},
    {"enable_mm_embeds", ENGINE_BOOL},
    {"enable_prefix_caching", ENGINE_BOOL},
    {"enable_prompt_embeds", ENGINE_BOOL},
    {"enable_prompt_tokens_details", ENGINE_BOOL},
    {"enable_sleep_mode", ENGINE_BOOL},
    {"enforce_eager", ENGINE_BOOL},
    {"eplb_config", ENGINE_OBJECT},
    {"exclude_tools_when_tool_choice_none", ENGINE_BOOL},
    {"fully_sharded_loras", ENGINE_BOOL},
    {"generation_config", ENGINE_TEXT},
    {"gpu_memory_utilization", ENGINE_REAL},
    {"guided_decoding_backend", ENGINE_TEXT},
    {"hf_config_path", ENGINE_TEXT},
    {"hf_overrides", ENGINE_OBJECT},
    {"hf_token", ENGINE_ANY},
    {"ignore_patterns", ENGINE_ANY},
    {"interleave_mm_strings", ENGINE_BOOL},
    {"kv_cache_dtype", ENGINE_TEXT},
    {"kv_cache_memory_bytes", ENGINE_INT},
    {"kv_events_config", ENGINE_OBJECT},
    {"kv_offloading_backend", ENGINE_TEXT},
    {"kv_offloading_size", ENGINE_REAL},
    {"kv_transfer_config", ENGINE_OBJECT},
    {"limit_mm_per_prompt", ENGINE_OBJECT},
    {"load_format", ENGINE_TEXT},
    {"logits_processor_pattern", ENGINE_TEXT},
    {"logits_processors", ENGINE_ANY},
    {"logprobs_mode", ENGINE_TEXT},
    {"long_prefill_token_threshold", ENGINE_INT},
    {"lora_dtype", ENGINE_TEXT},
    {"lora_modules", ENGINE_ANY},
    {"mamba_cache_dtype", ENGINE_TEXT},
    {"mamba_ssm_cache_dtype", ENGINE_TEXT},
    {"max_cpu_loras", ENGINE_INT},
    {"max_cudagraph_capture_size", ENGINE_INT},
    {"max_log_len", ENGINE_INT},
    {"max_logprobs", ENGINE_INT},
    {"max_long_partial_prefills", ENGINE_INT},
    {"max_lora_rank", ENGINE_INT},
    {"max_loras", ENGINE_INT},
    {"max_model_len", ENGINE_INT},
    {"max_num_batched_tokens", ENGINE_INT},
    {"max_num_partial_prefills", ENGINE_INT},
    {"max_num_seqs", ENGINE_INT},
    {"max_parallel_loading_workers", ENGINE_INT},
    {"max_seq_len_to_capture", ENGINE_INT},
    {"media_io_kwargs", ENGINE_OBJECT},
    {"mm_encoder_attn_backend", ENGINE_TEXT},
    {"mm_encoder_tp_mode", ENGINE_TEXT},
    {"mm_processor_cache_gb", ENGINE_REAL},
    {"mm_processor_cache_type", ENGINE_TEXT},
    {"mm_processor_kwargs", ENGINE_OBJECT},
    {"model_impl", ENGINE_TEXT},
    {"model_loader_extra_config", ENGINE_OBJECT},
    {"num_gpu_blocks_override", ENGINE_INT},
    {"otlp_traces_endpoint", ENGINE_TEXT},
    {"override_attention_dtype", ENGINE_TEXT},
    {"override_generation_config", ENGINE_OBJECT},
    {"override_pooler_config", ENGINE_OBJECT},
    {"pooler_config", ENGINE_OBJECT},
    {"prefix_caching_hash_algo", ENGINE_TEXT},
    {"pt_load_map_location", ENGINE_ANY},
    {"quantization", ENGINE_TEXT},
    {"reasoning_parser", ENGINE_TEXT},
    {"reasoning_parser_plugin", ENGINE_TEXT},
    {"response_role", ENGINE_TEXT},
    {"return_tokens_as_token_ids", ENGINE_BOOL},
    {"revision", ENGINE_TEXT},
    {"rope_scaling", ENGINE_OBJECT},
    {"rope_theta", ENGINE_REAL},
    {"runner", ENGINE_TEXT},
    {"safetensors_load_strategy", ENGINE_TEXT},
    {"scheduling_policy", ENGINE_TEXT},
    {"seed", ENGINE_INT},
    {"show_hidden_metrics_for_version", ENGINE_TEXT},
    {"skip_mm_profiling", ENGINE_BOOL},
    {"skip_tokenizer_init", ENGINE_BOOL},
    {"speculative_config", ENGINE_OBJECT},
    {"stream_interval", ENGINE_INT},
    {"structured_outputs_config", ENGINE_OBJECT},
    {"swap_space", ENGINE_REAL},
    {"task", ENGINE_TEXT},
    {"tensor_parallel_size", ENGINE_INT},
    {"tokenizer", ENGINE_TEXT},
    {"tokenizer_mode", ENGINE_TEXT},
    {"tokenizer_revision", ENGINE_TEXT},
    {"tool_call_parser", ENGINE_TEXT},
    {"tool_parser_plugin", ENGINE_TEXT},
    {"trust_remote_code", ENGINE_BOOL},
    {"trust_request_chat_template", ENGINE_BOOL},
    {"use_tqdm_on_load", ENGINE_BOOL},
    {"worker_cls", ENGINE_TEXT},
    {"worker_extension_cls", ENGINE_TEXT},
};

static const struct engine_arg sglang_args[] = {
    {"allow_auto_truncate", ENGINE_BOOL},
    {"attention_backend", ENGINE_TEXT},
    {"chat_template", ENGINE_TEXT},
    {"chunked_prefill_size", ENGINE_INT},
    {"context_length", ENGINE_INT},
    {"cpu_offload_gb", ENGINE_REAL},
    {"cuda_graph_bs", ENGINE_ANY},
    {"cuda_graph_max_bs", ENGINE_INT},
    {"decode_attention_backend", ENGINE_TEXT},
    {"device", ENGINE_TEXT},
    {"disable_cuda_graph", ENGINE_BOOL},
    {"disable_custom_all_reduce", ENGINE_BOOL},
    {"disable_overlap_schedule", ENGINE_BOOL},
    {"disable_radix_cache", ENGINE_BOOL},
    {"dtype", ENGINE_TEXT},
    {"enable_deterministic_inference", ENGINE_BOOL},
    {"enable_dp_attention", ENGINE_BOOL},
    {"enable_hierarchical_cache", ENGINE_BOOL},
    {"enable_lora", ENGINE_BOOL},
    {"enable_memory_saver", ENGINE_BOOL},
    {"enable_metrics", ENGINE_BOOL},
    {"enable_mixed_chunk", ENGINE_BOOL},
    {"enable_multimodal", ENGINE_BOOL},
    {"enable_torch_compile", ENGINE_BOOL},
    {"ep_size", ENGINE_INT},
    {"grammar_backend", ENGINE_TEXT},
    {"hicache_ratio", ENGINE_REAL},
    {"is_embedding", ENGINE_BOOL},
    {"json_model_override_args", ENGINE_TEXT},
    {"kv_cache_dtype", ENGINE_TEXT},
    {"load_format", ENGINE_TEXT},
    {"log_level", ENGINE_TEXT},
    {"log_requests", ENGINE_BOOL},
    {"lora_backend", ENGINE_TEXT},
    {"lora_paths", ENGINE_ANY},
    {"max_lora_rank", ENGINE_INT},
    {"max_loras_per_batch", ENGINE_INT},
    {"max_prefill_tokens", ENGINE_INT},
    {"max_running_requests", ENGINE_INT},
    {"max_total_tokens", ENGINE_INT},
    {"mem_fraction_static", ENGINE_REAL},
    {"moe_a2a_backend", ENGINE_TEXT},
    {"moe_runner_backend", ENGINE_TEXT},
    {"page_size", ENGINE_INT},
    {"preferred_sampling_params", ENGINE_TEXT},
    {"prefill_attention_backend", ENGINE_TEXT},
    {"quantization", ENGINE_TEXT},
    {"random_seed", ENGINE_INT},
    {"reasoning_parser", ENGINE_TEXT},
    {"revision", ENGINE_TEXT},
    {"sampling_backend", ENGINE_TEXT},
    {"schedule_conservativeness", ENGINE_REAL},
    {"schedule_policy", ENGINE_TEXT},
    {"skip_tokenizer_init", ENGINE_BOOL},
    {"speculative_algorithm", ENGINE_TEXT},
    {"speculative_draft_model_path", ENGINE_TEXT},
    {"speculative_eagle_topk", ENGINE_INT},
    {"speculative_num_draft_tokens", ENGINE_INT},
    {"speculative_num_steps", ENGINE_INT},
    {"stream_interval", ENGINE_INT},
    {"tokenizer_mode", ENGINE_TEXT},
    {"tokenizer_path", ENGINE_TEXT},
    {"tool_call_parser", ENGINE_TEXT},
    {"tp_size", ENGINE_INT},
    {"trust_remote_code", ENGINE_BOOL},
    {"watchdog_timeout", ENGINE_REAL},
};

enum { ENGINE_ARGS_MOST = 160 };
_Static_assert(array_len(vllm_args) <= ENGINE_ARGS_MOST, "names fit");
_Static_assert(array_len(sglang_args) <= ENGINE_ARGS_MOST, "names fit");

/* Say what argusd says, checked or not. */
static const char *const engine_taken[] = {
    "model",
    "model_path",
    "served_model_name",
    "host",
    "port",
    "api_key",
    "node_rank",
    "nnodes",
    "dist_init_addr",
    "pipeline_parallel_size",
    "pp_size",
    "data_parallel_size",
    "dp_size",
};

/* One request's arguments under examination. */
struct engine_look {
    const struct serve_engine_ask *asked;
    bool is_sglang;
    const struct engine_arg *known;
    size_t n_known;
    const char *field; /* where they stand: "engine_args" */
    const struct node *at;
    struct problems *ps;
};

static void engine_complain(const struct engine_look *k,
                            const char *name,
                            const char *code,
                            const struct message_arg *args)
{
    const struct node *n = node_find(k->at, name);
    problems_add(k->ps, PROBLEM_ERROR, k->field, n ? n->line : 0, n ? n->column : 0, code, args);
}

/* A null is a key with nothing behind it: the engine has its own value. */
static bool engine_fits(enum engine_kind kind, const json_t *value)
{
    if (json_is_null(value))
        return true;
    switch (kind) {
    case ENGINE_INT:
        return json_is_integer(value);
    case ENGINE_REAL:
        return json_is_number(value);
    case ENGINE_BOOL:
        return json_is_boolean(value);
    case ENGINE_TEXT:
        return json_is_string(value);
    case ENGINE_OBJECT:
        return json_is_object(value);
    case ENGINE_ANY:
        return true;
    }
    return false;
}

static const struct engine_arg *engine_find(const struct engine_look *k, const char *name)
{
    for (size_t i = 0; i < k->n_known; i++)
        if (str_eq(k->known[i].name, name))
            return &k->known[i];
    return NULL;
}

static const char *engine_nearest(const struct engine_look *k, const char *name)
{
    const char *names[ENGINE_ARGS_MOST];
    for (size_t i = 0; i < k->n_known; i++)
        names[i] = k->known[i].name;
    return str_nearest(name, names, k->n_known);
}

static void engine_check_known(const struct engine_look *k, const char *name, const json_t *value)
{
    const char *engine = k->asked->engine;
    const struct engine_arg *a = engine_find(k, name);
    const char *near = a ? NULL : engine_nearest(k, name);
    if (a && engine_fits(a->kind, value))
        return;
    if (a)
        engine_complain(k, name, "serve_engine_arg_kind",
                        MESSAGE_ARGS(MESSAGE_STR("arg", name),
                                     MESSAGE_STR("kind", engine_kind_words[a->kind])));
    else if (near)
        engine_complain(k, name, "serve_engine_arg_near",
                        MESSAGE_ARGS(MESSAGE_STR("engine", engine), MESSAGE_STR("arg", name),
                                     MESSAGE_STR("near", near)));
    else
        engine_complain(k, name, "serve_engine_arg",
                        MESSAGE_ARGS(MESSAGE_STR("engine", engine), MESSAGE_STR("arg", name)));
}

static bool engine_is_taken(const char *name)
{
    bool taken = false;
    for (size_t i = 0; i < array_len(engine_taken); i++)
        taken |= str_eq(engine_taken[i], name);
    return taken;
}

/* What the module of Ray Serve would refuse, or what has to be as the lease is. */
static void engine_check_meaning(const struct engine_look *k, const char *name, const json_t *value)
{
    if (engine_is_taken(name))
        engine_complain(k, name, "serve_key_taken",
                        MESSAGE_ARGS(MESSAGE_STR("key", name), MESSAGE_STR("instead", "gpus")));
    else if (str_eq(name, k->is_sglang ? "tp_size" : "tensor_parallel_size") &&
             (!json_is_integer(value) || (double)json_integer_value(value) != k->asked->gpus))
        engine_complain(k, name, "serve_tensor_parallel",
                        MESSAGE_ARGS(MESSAGE_NUM("gpus", k->asked->gpus)));
    else if (!k->is_sglang && str_eq(name, "distributed_executor_backend") &&
             !json_is_null(value) && !str_eq(json_string_value(value), "ray"))
        engine_complain(k, name, "serve_engine_executor", MESSAGE_NO_ARGS);
    else if (!k->is_sglang && str_eq(name, "disable_log_stats") && json_is_true(value))
        engine_complain(k, name, "serve_engine_stats", MESSAGE_NO_ARGS);
}

static void engine_look_at(const struct engine_look *k,
                           json_t *args,
                           bool is_checked,
                           const json_t *beside)
{
    const char *name;
    json_t *value;
    json_object_foreach (args, name, value) {
        if (is_checked && !k->asked->was_served && !engine_is_taken(name))
            engine_check_known(k, name, value);
        if (json_object_get(beside, name))
            engine_complain(k, name, "serve_engine_arg_twice",
                            MESSAGE_ARGS(MESSAGE_STR("arg", name)));
        engine_check_meaning(k, name, value);
    }
}

void serve_engine_check(const struct serve_engine_ask *asked, struct problems *ps)
{
    bool is_sglang = str_eq(asked->engine, "sglang");
    struct engine_look k = {.asked = asked,
                            .is_sglang = is_sglang,
                            .known = is_sglang ? sglang_args : vllm_args,
                            .n_known = is_sglang ? array_len(sglang_args) : array_len(vllm_args),
                            .field = "engine_args",
                            .at = asked->checked_at,
                            .ps = ps};
    if (!is_sglang && !str_eq(asked->engine, "vllm"))
        return;
    _cleanup_(json_unrefp) json_t *checked =
        asked->checked ? json_loads(asked->checked, 0, NULL) : NULL;
    _cleanup_(json_unrefp) json_t *unchecked =
        asked->unchecked ? json_loads(asked->unchecked, 0, NULL) : NULL;
    engine_look_at(&k, checked, true, NULL);
    k.field = "engine_args_unchecked";
    k.at = asked->unchecked_at;
    engine_look_at(&k, unchecked, false, checked);
}
