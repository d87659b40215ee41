import Foundation

@objc public final class Store<T>: Base {
    private(set) var limit = 5
    init?(limit: Int) { self.limit = limit }

    func load(_ key: String) async throws -> T? {
        func local() {}
        return nil
    }
}

struct Point { let x: Int }
enum Color {
    case red
    indirect case mix(Color)
}
protocol Shape { func area() -> Double }
extension Store: Shape {
    static func == (a: Store, b: Store) -> Bool { true }
}
actor Counter {}
typealias Names = [String]
