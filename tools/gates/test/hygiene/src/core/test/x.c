/* usleep(3) in a comment is fine. */
static void test_x(void **state)
{
    usleep(3);
    assert_true(true);
}
