package x;

/* class Commented { */
@Service
public final class Store<T> implements Base {
    private static final String TEXT = """
        class InText {
        """;
    private int limit = 5;

    public Store(int limit) {
        this.limit = limit;
    }

    @Override
    public Map<String, List<T>> load(String key)
            throws IOException {
        if (key == null) {
            return new Store<>(1).load("}");
        }
        return null;
    }

    abstract void nothing();

    enum Color { RED, GREEN }

    static class Inner {
        void deep() {}
    }
}

interface Shape {
    double area();
}

record Point(int x, int y) {}
