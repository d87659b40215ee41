# class Commented
module Tools
  LIMIT = 5

  class Store < Base
    attr_reader :limit

    def initialize(limit)
      @limit = limit
      items.each do |i|
        puts i
      end
    end

    def self.load(key) = new(key)

    def empty?; true; end

    private def secret!
      if true
        1
      end
    end
  end
end

def helper
end
