printf 'the %s said so\n' "$(printf 'c\154aude')" >CREDITS
printf 'cache = "/%s/main"\n' "$(printf 'w\157rk')" >conf.toml
