static void a_test_may(const struct record_extra *x)
{
    assert_non_null(strstr(x->argv, "--fast"));
}
