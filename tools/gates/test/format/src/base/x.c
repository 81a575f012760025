int f(int a)
{
    return a;
}

int g( int a ){ return a; }
