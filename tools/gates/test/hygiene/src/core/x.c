/* TODO: the other half */
