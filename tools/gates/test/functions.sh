mkdir -p src/base
{
    echo 'static int big(int x)'
    echo '{'
    seq -f '    x += %g;' 78
    echo '    return x;'
    echo '}'
    echo 'static const int table[] = {'
    seq -f '    %g,' 200
    echo '};'
    echo 'static int fits(int x)'
    echo '{'
    seq -f '    x += %g;' 76
    echo '    return x;'
    echo '}'
} >src/base/big.c
{
    echo 'static int ways(int x)'
    echo '{'
    seq -f '    if (x == %g) x++;' 15
    echo '    return x;'
    echo '}'
    echo 'static int table(int x)'
    echo '{'
    echo '    switch (x) {'
    seq -f '    case %g: return 1;' 30
    echo '    }'
    echo '    return 0;'
    echo '}'
} >src/base/ways.c
