namespace App.Tools;

namespace Old
{
    public sealed class Store<T> : Base where T : class
    {
        private readonly string path = @"C:\{";
        public int Limit { get; set; } = 5;
        public string Name => "x";

        public Store(int limit)
        {
            Limit = limit;
        }

        public async Task<T?> Load(string key)
        {
            return await Find(key);
        }
    }

    public interface IShape { double Area(); }
    public enum Color { Red }
    public record Point(int X, int Y);
    public delegate void Changed(int x);
}
